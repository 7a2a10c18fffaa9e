//! Ranks: processes that make the same calls, each with its own version, threads and timing.

use std::process::Stdio;

use dynamiccl_spec::driven::CHUNKS_SINCE;

use crate::host::{PLAIN, command, run, scratch};

/// Calls of each; `scripts/bench/plugin_latency.sh` makes 1,000,000.
const CALLS: &str = "40000";

fn digest(set: &[(&str, &str)], timing: &str) -> String {
    let run = run(&PLAIN, &["digest", CALLS, "4", timing, "4"], set);
    assert!(run.succeeded, "{}", run.said);
    run.said
}

/// Versions that ask for chunk sizes have more to choose than those before, and NCCL lets no two releases meet.
#[test]
fn eight_processes_decide_alike() {
    let versions: [u32; 8] = std::array::from_fn(|process| 3 + process as u32 % 5);
    let started = versions.iter().enumerate().map(|(timing, version)| {
        let words = ["digest", CALLS, "4", &timing.to_string(), &version.to_string()];
        let mut command = command(PLAIN.path(), &[], &words, &[]);
        command.stdout(Stdio::piped()).spawn().expect("it can be run")
    });
    let processes: Vec<_> = started.collect();
    let said = processes.into_iter().map(|process| {
        let output = process.wait_with_output().expect("it ends");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    });
    let said: Vec<String> = said.collect();
    assert!(said[0].starts_with("40000 calls, digest "), "{}", said[0]);
    let of = |version: u32| versions.iter().position(|known| *known == version).map(|at| &said[at]);
    for (line, version) in said.iter().zip(versions) {
        let first = of(if version < CHUNKS_SINCE { 3 } else { CHUNKS_SINCE });
        assert_eq!(Some(line), first, "{said:?}");
    }
    assert_ne!(of(3), of(CHUNKS_SINCE));
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
