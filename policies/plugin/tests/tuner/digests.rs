//! Ranks: processes that make the same calls, each with its own version, threads and timing.

use std::process::Stdio;

use crate::host::{PLAIN, command, run, scratch};

/// Calls of each; `scripts/bench/plugin_latency.sh` makes 1,000,000.
const CALLS: &str = "40000";

fn digest(set: &[(&str, &str)], timing: &str) -> String {
    let run = run(&PLAIN, &["digest", CALLS, "4", timing], set);
    assert!(run.succeeded, "{}", run.said);
    run.said
}

#[test]
fn eight_processes_decide_alike() {
    let processes: Vec<_> = (0..8)
        .map(|timing: u32| {
            let mut command = command(PLAIN.path(), &[], &["digest", CALLS, "4", &timing.to_string()], &[]);
            command.stdout(Stdio::piped()).spawn().expect("it can be run")
        })
        .collect();
    let said = processes.into_iter().map(|process| {
        let output = process.wait_with_output().expect("it ends");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    });
    let said: Vec<String> = said.collect();
    assert!(said[0].starts_with("40000 calls, digest "), "{}", said[0]);
    assert!(said.iter().all(|line| *line == said[0]), "{said:?}");
}

/// Otherwise the test above would show nothing.
#[test]
fn what_a_decision_depends_on_does_change_it() {
    let usual = digest(&[], "1");
    let path = scratch("context.toml");
    std::fs::write(&path, "[cluster]\ngpu = \"blackwell\"\nintra = \"nvlink\"\n")
        .expect("a file can be written");
    let path = path.display().to_string();
    for set in [
        [("DYNAMICCL_CONTEXT", path.as_str())],
        [("DYNAMICCL_POLICY", "shipped")],
        [("DYNAMICCL_DETERMINISTIC", "1")],
        [("DYNAMICCL_MODE", "observe")],
        [("DYNAMICCL_MODE", "off")],
        [("NCCL_ALGO", "Ring,Tree")],
    ] {
        assert_ne!(digest(&set, "1"), usual, "{set:?}");
    }
    assert_eq!(digest(&[("DYNAMICCL_MODE", "off")], "1"), digest(&[("DYNAMICCL_MODE", "observe")], "2"));
}
