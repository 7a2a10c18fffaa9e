//! `inspect`.

use dynamiccl_policies::frozen::FORMAT;

use crate::util::{Dir, assert_same, repository};

const RULES: &str = "# mine\nallreduce,0,4294967295,tree,simple,-1,2,-1\nreduce,0,-1,tree,ll,0,-1,-1\n";

#[test]
fn a_policy_is_shown_with_what_it_can_and_whence_it_comes() {
    let dir = Dir::new();
    let frozen = dir.write_policy("tiny.safetensors");
    let document = dir.run("inspect tiny.safetensors --json").json();
    assert_eq!((&document["kind"], &document["runnable"]), (&"policy".into(), &true.into()));
    let policy = &document["policy"];
    assert_eq!(policy["hash"], format!("{:016x}", frozen.hash()));
    assert_eq!((&policy["features"], &policy["shape"]["memory"]), (&"feat-v3".into(), &8.into()));
    assert_eq!((&policy["training"]["seeds"][0], &policy["results"][0]["value"]), (&7.into(), &1.25.into()));
    let said = dir.run("inspect tiny.safetensors");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.ends_with("Summary  a policy that this build can run\n"), "{}", said.stdout);
    assert!(said.stdout.contains("speedup.tier1  1.25"), "{}", said.stdout);
}

#[test]
fn a_policy_of_a_later_format_is_readable_and_not_for_this_build() {
    let dir = Dir::new();
    let bytes = dir.write_policy("tiny.safetensors").to_bytes();
    let at = bytes.windows(FORMAT.len()).position(|word| word == FORMAT.as_bytes()).unwrap();
    let mut later = bytes.clone();
    later[at + FORMAT.len() - 1] = b'2';
    std::fs::write(dir.path("later.safetensors"), later).unwrap();
    let said = dir.run("inspect later.safetensors");
    assert_eq!((said.code, said.stderr.as_str()), (1, ""));
    assert!(
        said.stdout
            .contains("a policy that this build cannot run: it is no DynamICCL policy that this build knows"),
        "{}",
        said.stdout
    );
    let said = dir.run("inspect later.safetensors --json");
    assert_eq!(said.code, 1);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(document["metadata"]["format"], "dynamiccl-policy-2");
    assert_eq!((&document["runnable"], &document["policy"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn a_file_that_is_not_whole_is_an_error_that_names_it() {
    let dir = Dir::new();
    let mut bytes = dir.write_policy("tiny.safetensors").to_bytes();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(dir.path("flipped.safetensors"), &bytes).unwrap();
    let said = dir.run("inspect flipped.safetensors");
    assert!(
        said.stderr.starts_with("error: flipped.safetensors: its content has the fingerprint "),
        "{}",
        said.stderr
    );
    assert_eq!(said.code, 2);
    dir.run("inspect none.safetensors")
        .assert_error("error: none.safetensors: cannot be read: No such file or directory (os error 2)");
    dir.write("wrong.conf", "allreduce,0,1,ring,ll,1,-1\n");
    let line = "error: wrong.conf: line 1: 7 columns, expected 8 to 10: collective_type,min_bytes,max_bytes,\
                algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff";
    dir.run("inspect wrong.conf").assert_error(line);
    dir.write("empty.conf", "# nothing\n");
    dir.run("inspect empty.conf")
        .assert_error("error: empty.conf: no rule in it, so no table; give a policy or a table");
}

#[test]
fn a_table_is_shown_with_what_its_author_may_not_have_meant() {
    let dir = Dir::new();
    dir.write("nccl_tuner.conf", RULES);
    let said = dir.run("inspect -q nccl_tuner.conf");
    assert_eq!(said.code, 0, "{}", said.stderr);
    let notes: Vec<_> = said.stdout.lines().filter_map(|line| line.trim().strip_prefix("note ")).collect();
    assert_eq!(notes.len(), 3, "{}", said.stdout);
    let document = dir.run("inspect nccl_tuner.conf --json").json();
    assert_eq!((&document["kind"], &document["table"]["rules"]), (&"nccl_csv".into(), &2.into()));
}

#[test]
fn files_of_other_commands_lead_to_them() {
    let dir = Dir::new();
    dir.write("mine.toml", &repository("env/clusters/dgx_a100.toml"));
    dir.write("job.jsonl", &repository("env/tests/data/traces/job.jsonl"));
    let summary = |words: &str| {
        let said = dir.run(words);
        assert_eq!(said.code, 1, "{}", said.stderr);
        said.stdout.lines().last().unwrap_or_default().to_owned()
    };
    assert_same(
        "Summary  no policy but a cluster: dynamiccl simulate --cluster mine.toml …",
        &summary("inspect mine.toml"),
    );
    assert_same(
        "Summary  no policy but a trace: dynamiccl check-env trace --trace job.jsonl",
        &summary("inspect job.jsonl"),
    );
}

#[test]
fn not_all_json_is_a_trace() {
    let dir = Dir::new();
    let words = "tune --method random --budget 2 --cluster dgx_a100 --nodes 1 --bytes 1M --out found.json";
    assert_eq!(dir.run(words).code, 0);
    let said = dir.run("inspect found.json");
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    assert!(
        said.stderr.starts_with("error: of what is JSON only a trace can be looked at"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("found.json"), "{}", said.stderr);
}

#[test]
fn the_shipped_policy_has_a_name() {
    let dir = Dir::new();
    let [named, usual] = ["inspect shipped", "inspect"].map(|words| dir.run(words));
    assert_eq!((named.code, named.stdout), (0, usual.stdout));
}
