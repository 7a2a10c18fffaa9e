//! `plugin doctor` on one rank.

use dynamiccl_spec::fnv::Fnv;
use serde_json::Value;

use crate::plugin::{compiled, library, run};
use crate::util::{Dir, repository_path};

/// The document of a rank with these variables, whatever the verdict, and its exit code.
fn examined(dir: &Dir, variables: &[(&str, &str)]) -> (i32, Value) {
    let file = library().display().to_string();
    let variables = [&[("NCCL_TUNER_PLUGIN", file.as_str())], variables].concat();
    let said = run(dir, "plugin doctor --json", &variables);
    assert_eq!(said.stderr, "");
    (said.code, serde_json::from_str(&said.stdout).expect("a document"))
}

/// The texts of one level.
fn texts(document: &Value, level: &str) -> Vec<String> {
    let findings = document["findings"].as_array().expect("findings");
    let ours = findings.iter().filter(|finding| finding["level"] == level);
    ours.map(|finding| finding["text"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn a_healthy_rank_says_what_it_would_do() {
    let dir = Dir::new();
    let (code, document) = examined(&dir, &[]);
    assert_eq!((code, &document["healthy"], &document["agree"]), (0, &true.into(), &true.into()));
    let facts = &document["facts"];
    assert_eq!((&facts["tuner"], &facts["mode"]), (&"loaded".into(), &"act".into()));
    assert_eq!((&facts["version"], &facts["context"]), (&env!("CARGO_PKG_VERSION").into(), &"none".into()));
    let policy = facts["policy"].as_str().unwrap();
    let hash = dynamiccl_policies::frozen::Frozen::shipped().unwrap().hash();
    assert_eq!(policy, format!("shipped {hash:016x}"));
    let mut build = Fnv::new();
    build.bytes(&std::fs::read(library()).unwrap());
    assert_eq!(facts["library"], format!("{:016x}", build.value()));
    assert_eq!(document["interfaces"].as_array().unwrap().len(), 14);
    assert!(facts["decisions"].as_str().unwrap().contains("of 495 calls changed"), "{facts}");
    assert_eq!(texts(&document, "fault"), [""; 0]);
}

#[test]
fn decisions_follow_policy_context_mode_and_overrides() {
    let dir = Dir::new();
    dir.write_wild_policy("wild.safetensors");
    dir.write("context.toml", "[cluster]\ngpu = \"hopper\"\n[launch]\nthreads = 256\n");
    let (policy, context) = (("DYNAMICCL_POLICY", "wild.safetensors"), ("DYNAMICCL_CONTEXT", "context.toml"));
    let decisions = |variables: &[(&str, &str)]| {
        let (code, document) = examined(&dir, variables);
        assert_eq!(code, 0, "{document}");
        document["facts"]["decisions"].as_str().unwrap().to_owned()
    };
    let mut seen = vec![
        decisions(&[policy]),
        decisions(&[policy, context]),
        decisions(&[policy, ("DYNAMICCL_DETERMINISTIC", "1")]),
        decisions(&[policy, ("NCCL_PROTO", "Simple")]),
        decisions(&[policy, ("DYNAMICCL_MODE", "observe")]),
    ];
    assert!(seen[4].ends_with("(0 of 495 calls changed)"), "{seen:?}");
    assert_eq!(decisions(&[policy]), seen[0], "the same again");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[test]
fn what_would_stop_a_rank_is_a_fault() {
    let dir = Dir::new();
    dir.write("short.safetensors", "x");
    dir.write("wrong.toml", "[cluster]\ngpu = \"hoper\"\n");
    for (variables, parts) in [
        (&[("DYNAMICCL_POLICY", "/nowhere/p")][..], &["DYNAMICCL_POLICY", "/nowhere/p", "No such file"][..]),
        (&[("DYNAMICCL_POLICY", "short.safetensors")], &["DYNAMICCL_POLICY", "short.safetensors"]),
        (&[("DYNAMICCL_CONTEXT", "wrong.toml")], &["DYNAMICCL_CONTEXT", "wrong.toml", "hoper"]),
        (&[("DYNAMICCL_MODE", "obsrve")], &["DYNAMICCL_MODE", "did you mean \"observe\""]),
        (&[("DYNAMICCL_DETERMINISTIC", "yes")], &["DYNAMICCL_DETERMINISTIC=\"yes\"", "write 1 or 0"]),
        (&[("NCCL_TUNER_PLUGIN", "/nowhere.so")], &["/nowhere.so", "NCCL would go on without it"]),
        (&[("NCCL_ENV_PLUGIN", "/nowhere.so")], &["NCCL_ENV_PLUGIN", "/nowhere.so"]),
        (&[("DYNAMICCL_POLICY", "walk")], &["DYNAMICCL_POLICY=walk", "for tests only"]),
        (&[("DYNAMICCL_EXPECT", "")], &["DYNAMICCL_EXPECT=\"\"", "unset it"]),
    ] {
        let (code, document) = examined(&dir, variables);
        let faults = texts(&document, "fault");
        assert_eq!((code, &document["healthy"]), (1, &false.into()), "{variables:?}: {document}");
        assert!(parts.iter().all(|part| faults[0].contains(part)), "{faults:?}");
        let is_there = variables[0].0 != "NCCL_TUNER_PLUGIN";
        assert_eq!(document["facts"]["tuner"], if is_there { "loaded" } else { "not loaded" });
    }
}

/// A command for the hash that fails leaves the variable empty.
#[test]
fn what_the_launcher_expects_is_shown() {
    let dir = Dir::new();
    let hash = dynamiccl_policies::frozen::Frozen::shipped().unwrap().hash();
    let expect = format!("{hash:016x}");
    for (said, code, shown) in [
        (expect.as_str(), 0, expect.as_str()),
        ("00000000000000FF", 1, "00000000000000ff"),
        ("", 1, "nothing"),
    ] {
        let (ended, document) = examined(&dir, &[("DYNAMICCL_EXPECT", said)]);
        assert_eq!((ended, &document["facts"]["expect"]), (code, &shown.into()), "{document}");
    }
    assert_eq!(examined(&dir, &[]).1["facts"]["expect"], "any");
}

/// NCCL puts the lines of its files into the environment before it loads a plugin.
#[test]
fn what_nccl_takes_from_its_files_counts_as_if_it_were_exported() {
    let dir = Dir::new();
    let lines = ["NCCL_PROTO=Simple", "DYNAMICCL_MODE=observe", "DYNAMICCL_POLCY=x", "NCCL_ENV_PLUGIN", ""];
    dir.write("nccl.conf", &lines.join("\n"));
    let file = ("NCCL_CONF_FILE", "nccl.conf");
    let (code, document) = examined(&dir, &[file]);
    let facts = &document["facts"];
    assert_eq!((code, &facts["mode"], &facts["fixed"]), (0, &"observe".into(), &"NCCL_PROTO=Simple".into()));
    assert!(
        texts(&document, "note")
            .contains(&"nccl.conf sets NCCL_PROTO=Simple, which holds for this host's ranks".to_owned())
    );
    assert!(texts(&document, "warning")[0].contains("did you mean DYNAMICCL_POLICY?"), "{document}");
    let document = examined(&dir, &[file, ("NCCL_PROTO", "LL"), ("DYNAMICCL_MODE", "act")]).1;
    let facts = &document["facts"];
    assert_eq!((&facts["mode"], &facts["fixed"]), (&"act".into(), &"NCCL_PROTO=LL".into()));
    dir.write("nccl.conf", &format!("NCCL_TUNER_PLUGIN={}\n", library().display()));
    let document = run(&dir, "plugin doctor --json", &[file]).json();
    assert_eq!(document["facts"]["tuner"], "loaded");
}

#[test]
fn threads_are_those_that_nccl_would_get() {
    let (dir, file) = (Dir::new(), library().display().to_string());
    let env = ("NCCL_ENV_PLUGIN", file.as_str());
    let threads = |variables: &[(&str, &str)]| examined(&dir, variables).1["facts"]["threads"].clone();
    assert_eq!(threads(&[]), "own");
    assert_eq!(threads(&[env, ("DYNAMICCL_NTHREADS", "256")]), "256");
    assert_eq!(threads(&[env, ("DYNAMICCL_NTHREADS", "256"), ("NCCL_NTHREADS", "128")]), "128");
    let (code, document) = examined(&dir, &[("DYNAMICCL_NTHREADS", "256")]);
    assert_eq!((code, &document["facts"]["threads"]), (0, &"own".into()));
    assert!(texts(&document, "warning")[0].contains("set NCCL_ENV_PLUGIN"), "{document}");
    let (code, document) = examined(&dir, &[env, ("DYNAMICCL_NTHREADS", "100")]);
    assert_eq!(code, 1);
    assert!(texts(&document, "fault")[0].contains("DYNAMICCL_NTHREADS"), "{document}");
}

#[test]
fn what_is_odd_but_runs_is_a_warning() {
    let (dir, file) = (Dir::new(), library().display().to_string());
    dir.write("part.toml", "[cluster]\ngpu = \"hopper\"\n");
    let (env, profiler) = (("NCCL_ENV_PLUGIN", file.as_str()), ("NCCL_PROFILER_PLUGIN", file.as_str()));
    for (variables, part) in [
        (&[("DYNAMICCL_POLCY", "x")][..], "did you mean DYNAMICCL_POLICY?"),
        (&[("DYNAMICCL_POLICY", "/nowhere"), ("DYNAMICCL_STRICT", "0")], "DYNAMICCL_STRICT=0"),
        (&[("DYNAMICCL_PROFILE", "x")], "set NCCL_PROFILER_PLUGIN"),
        (&[("NCCL_NTHREADS", "many")], "NCCL_NTHREADS=many"),
        (&[("NCCL_TUNER_PLUGIN", "none")], "NCCL_TUNER_PLUGIN is not set"),
        (&[("NCCL_PROFILER_PLUGIN", "/nowhere.so"), ("DYNAMICCL_PROFILE", "x")], "/nowhere.so"),
        (&[], "DYNAMICCL_CONTEXT is not set"),
        (&[("DYNAMICCL_MODE", "driven")], "DYNAMICCL_MODE=driven is for programs that measure"),
        (
            &[("DYNAMICCL_CONTEXT", "part.toml")],
            "leaves out cluster.intra, cluster.inter, cluster.class, cluster.tiers",
        ),
        (&[env, ("DYNAMICCL_BUFFSIZE", "3000"), ("DYNAMICCL_STRICT", "0")], "buffer = \"3000\""),
        (&[profiler, ("DYNAMICCL_PROFILE", "/proc/nope")], "DYNAMICCL_PROFILE=/proc/nope: nothing can be"),
        (
            &[profiler, ("DYNAMICCL_PROFILE_MAX_MB", "abc")],
            "DYNAMICCL_PROFILE_MAX_MB=abc: give a whole number",
        ),
    ] {
        let (code, document) = examined(&dir, variables);
        let warnings = texts(&document, "warning");
        assert_eq!(code, 0, "{document}");
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{variables:?}: {warnings:?}");
    }
    assert_eq!(dir.names(), ["part.toml"], "nothing is written");
    let (code, document) = examined(&dir, &[("NCCL_ALGO", "Ring"), ("DYNAMICCL_MODE", "off")]);
    assert_eq!(
        (code, &document["facts"]["mode"], &document["facts"]["fixed"]),
        (0, &"off".into(), &"NCCL_ALGO=Ring".into())
    );
    assert!(texts(&document, "note")[0].contains("NCCL_ALGO=Ring stands"), "{document}");
}

#[test]
fn the_release_of_nccl_is_found() {
    let dir = Dir::new();
    compiled(&dir, "libnccl.so.2", "int ncclGetVersion(int *v) { *v = 22809; return 0; }");
    let folder = dir.path("").display().to_string();
    assert_eq!(examined(&dir, &[("LD_LIBRARY_PATH", &folder)]).1["facts"]["nccl"], "2.28.9");
    let said = run(&dir, "plugin doctor --json --nccl libnccl.so.2", &[]).json();
    assert_eq!(said["facts"]["nccl"], "unknown", "a bare name is the dynamic linker's");
    let said = run(&dir, "plugin doctor --json --nccl ./libnccl.so.2", &[]).json();
    assert_eq!(said["facts"]["nccl"], "2.28.9");
}

#[test]
fn a_library_that_crashes_does_not_take_the_doctor_along() {
    let dir = Dir::new();
    let crash = "__attribute__((constructor)) static void crash(void) { *(volatile int *)0 = 1; }";
    let file = compiled(&dir, "crash.so", crash);
    let (code, document) = examined(&dir, &[("NCCL_TUNER_PLUGIN", &file)]);
    assert_eq!(code, 1);
    assert!(texts(&document, "fault")[0].contains("it crashes"), "{document}");
}

#[test]
fn text_says_the_same() {
    let said = run(&Dir::new(), "plugin doctor", &[("DYNAMICCL_MODE", "obsrve")]);
    assert_eq!(said.code, 1);
    let last = said.stdout.lines().last().unwrap();
    assert_eq!(last, "Summary  this rank must not begin: see the faults above");
    assert!(said.stdout.contains("\n# fault: DYNAMICCL_MODE: unknown mode"), "{}", said.stdout);
    assert!(said.stdout.contains("tuner v2-v7, profiler v1-v6, env v1-v2"), "{}", said.stdout);
}

/// The names of our variables that stand as words in the library's sources.
fn variables_of_the_library() -> Vec<String> {
    let mut folders = vec![repository_path("policies/plugin/src")];
    let mut names = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            // Tests stand last, and may write them out.
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            names.extend(
                text.split('"')
                    .filter(|word| {
                        word.strip_prefix("DYNAMICCL_").is_some_and(|rest| {
                            !rest.is_empty() && rest.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                        })
                    })
                    .map(str::to_owned),
            );
        }
    }
    names.sort();
    names.dedup();
    names
}

/// What is on that list is known to the doctor, and explained ([`crate::docs`]).
#[test]
fn the_library_reads_no_variable_that_is_not_on_the_list_of_all() {
    assert_eq!(variables_of_the_library(), Vec::<String>::new(), "name them in dynamiccl_spec::variables");
}
