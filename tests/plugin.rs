//! `plugin path` and `plugin install`, and what they share with `plugin doctor`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::util::{Dir, Said};

/// NCCL's and our variables of the shell that runs the tests would be talked about, and so would its launcher's.
pub const OTHERS: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"];

/// The program, in a folder, with nothing in its environment but these.
pub fn program(dir: &Dir, words: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(cargo_bin!("dynamiccl"));
    command.current_dir(dir.path("")).args(words.split_whitespace());
    let others =
        |name: &str| name.starts_with("NCCL_") || name.starts_with("DYNAMICCL_") || OTHERS.contains(&name);
    for (name, _) in std::env::vars_os().filter(|(name, _)| others(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    // And so would the file in the home of who runs them.
    command.env("NCCL_CONF_FILE", "/dev/null").envs(variables.iter().copied());
    command
}

/// What it says.
pub fn run(dir: &Dir, words: &str, variables: &[(&str, &str)]) -> Said {
    let output = program(dir, words, variables).output().expect("run dynamiccl");
    Said {
        code: output.status.code().expect("an exit code, not a signal"),
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}

/// The built library.
pub fn library() -> PathBuf {
    let folder = cargo_bin!("dynamiccl").parent().expect("a folder").to_owned();
    // Tests build the second anew; the first is of the last `cargo build`.
    let places = [folder.join("deps/libnccl_tuner_dynamiccl.so"), folder.join("libnccl_tuner_dynamiccl.so")];
    places.into_iter().find(|file| file.is_file()).expect("the library is built: cargo build --release")
}

/// A library made of this C.
pub fn compiled(dir: &Dir, name: &str, source: &str) -> String {
    dir.write("lib.c", source);
    let file = dir.path(name).display().to_string();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &file]).arg(dir.path("lib.c"));
    assert!(compiler.status().expect("a C compiler").success());
    file
}

#[test]
fn path_prints_lines_that_a_shell_can_run() {
    let said = run(&Dir::new(), "plugin path", &[]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    let lines: Vec<_> = said.stdout.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 2, "{}", said.stdout);
    let script =
        format!("{}\ntest -f \"$NCCL_TUNER_PLUGIN\" && test -f \"$NCCL_PROFILER_PLUGIN\"", said.stdout);
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success(), "{script}");
    let document = run(&Dir::new(), "plugin path --json", &[]).json();
    let found = fs::canonicalize(document["library"].as_str().unwrap()).unwrap();
    assert_eq!(found.file_name(), library().file_name());
}

#[test]
fn what_is_no_file_is_refused_with_its_name() {
    let dir = Dir::new();
    for words in ["plugin path --library nowhere.so", "plugin install --to x --library nowhere.so"] {
        run(&dir, words, &[])
            .assert_error("error: --library nowhere.so: No such file or directory (os error 2)");
    }
    run(&dir, "plugin path --library .", &[])
        .assert_error("error: --library .: it is no file; name the library itself");
    assert!(dir.names().is_empty());
}

#[test]
fn install_makes_every_name_that_nccl_looks_for() {
    let dir = Dir::new();
    let words = format!("plugin install --library {} --to deep/lib", library().display());
    let said = run(&dir, &format!("{words} --json"), &[]).json();
    assert_eq!(said["installed"].as_array().unwrap().len(), 4);
    let lib = dir.path("deep/lib");
    let mut names: Vec<_> =
        fs::read_dir(&lib).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let links = ["libnccl-env-dynamiccl.so", "libnccl-profiler-dynamiccl.so", "libnccl-tuner-dynamiccl.so"];
    assert_eq!(names, [&links[..], &["libnccl_tuner_dynamiccl.so"]].concat());
    let original = fs::read(library()).unwrap();
    for name in names {
        assert!(fs::read(lib.join(&name)).unwrap() == original, "{name}");
    }
    // A word is enough then, and a second time replaces what is there.
    let path = lib.display().to_string();
    let again = run(&dir, &words, &[]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
    let variables = [("LD_LIBRARY_PATH", path.as_str()), ("NCCL_TUNER_PLUGIN", "dynamiccl")];
    let document = run(&dir, "plugin doctor --json", &variables).json();
    assert_eq!(document["library"], "libnccl-tuner-dynamiccl.so");
    assert_eq!(document["facts"]["tuner"], "loaded");
}

/// Ranks that open the library again get the new one, the others keep the old.
#[test]
fn install_warns_where_it_replaces_another_library() {
    let dir = Dir::new();
    let words = format!("plugin install --library {} --to lib", library().display());
    fs::create_dir(dir.path("lib")).unwrap();
    dir.write("lib/libnccl_tuner_dynamiccl.so", "an older one");
    let said = run(&dir, &words, &[]);
    assert_eq!(said.code, 0);
    assert!(
        said.stderr.starts_with("warning: ") && said.stderr.contains("was another library"),
        "{}",
        said.stderr
    );
    assert_eq!(run(&dir, &words, &[]).stderr, "");
}

#[test]
fn what_is_not_the_plugin_is_refused_and_nothing_is_written() {
    let dir = Dir::new();
    dir.write("text.so", "this is text");
    compiled(&dir, "empty.so", "int nothing;");
    compiled(&dir, "other.so", "const char *ncclTunerPlugin_v6[5] = {\"Other\"};");
    compiled(
        &dir,
        "crash.so",
        "#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }",
    );
    for (file, said) in [
        ("text.so", "NCCL could not open it"),
        ("empty.so", "it has no ncclTunerPlugin_v6"),
        ("other.so", "it calls itself \"Other\" and not \"DynamICCL\""),
        ("crash.so", "it crashes when it is opened or asked (signal 6)"),
    ] {
        for command in ["install --to lib", "path"] {
            let refused = run(&dir, &format!("plugin {command} --library {file}"), &[]);
            assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{file}");
            assert!(
                refused.stderr.starts_with("error: ") && refused.stderr.contains(said),
                "{}",
                refused.stderr
            );
            assert!(refused.stderr.contains(file) && !dir.path("lib").exists(), "{}", refused.stderr);
        }
    }
}

#[test]
fn install_says_where_it_cannot_write() {
    let dir = Dir::new();
    dir.write("file", "");
    let refused = run(&dir, "plugin install --to file/lib", &[]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.starts_with("error: --to file/lib: "), "{}", refused.stderr);
    // A folder in the place of a name is not replaced, and neither is anything else.
    for name in ["tuner", "profiler", "env"].map(|kind| format!("libnccl-{kind}-dynamiccl.so")) {
        let dir = Dir::new();
        fs::create_dir_all(dir.path(&format!("lib/{name}/x"))).unwrap();
        dir.write("lib/libnccl_tuner_dynamiccl.so", "an older one");
        let refused = run(&dir, "plugin install --to lib", &[]);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.ends_with(&format!("/{name}: it is a folder\n")), "{}", refused.stderr);
        let old = fs::read_to_string(dir.path("lib/libnccl_tuner_dynamiccl.so")).unwrap();
        let left = fs::read_dir(dir.path("lib")).unwrap().count();
        assert_eq!((old.as_str(), left), ("an older one", 2), "the library and the folder");
    }
}

#[test]
fn the_judge_of_live_runs_reads_logs() {
    let judge = crate::util::repository_path("scripts/live/plugin_report.py");
    let output = Command::new("python3").arg(judge).arg("--self-test").output().expect("Python 3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
