//! What a user reads in NCCL's log.

use dynamiccl_policies::frozen::Frozen;
use dynamiccl_spec::fnv::Fnv;

use crate::host::{PLAIN, run, scratch};

const CONTEXT: &str = "[cluster]\ngpu = \"hopper\"\n";

fn said(version: &str, set: &[(&str, &str)]) -> Vec<String> {
    let run = run(&PLAIN, &["show", version, "32", "4"], set);
    assert!(run.succeeded, "{}", run.said);
    run.said.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn one_line_says_what_was_loaded() {
    let path = scratch("logged.toml");
    std::fs::write(&path, CONTEXT).expect("a file can be written");
    let path = path.display().to_string();
    let (shipped, mut context) = (Frozen::shipped().unwrap().hash(), Fnv::new());
    context.bytes(CONTEXT.as_bytes());
    let context = context.value();
    let first =
        &said("6", &[("DYNAMICCL_POLICY", "shipped"), ("DYNAMICCL_CONTEXT", &path), ("NCCL_ALGO", "^NVLS")])
            [0];
    let expected = format!(
        "log 3: DynamICCL: {}, tuner v6, 32 ranks on 4 nodes, 4 NVLink domains of 4 to 8 ranks, communicator \
         0x1234567890abcdef, policy shipped {shipped:016x}, context {context:016x}, mode act, fixed by the user: \
         NCCL_ALGO=^NVLS",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(*first, expected);
    let plain = &said("3", &[("DYNAMICCL_DETERMINISTIC", "1")])[0];
    assert!(plain.contains("tuner v3, 32 ranks on 4 nodes, policy wild "), "{plain}");
    assert!(plain.ends_with("context none, mode act, deterministic"), "{plain}");
}

#[test]
fn first_decisions_are_logged_and_later_ones_are_not() {
    let lines = said("5", &[]);
    assert_eq!(lines.len(), 1 + 256);
    assert!(lines.iter().any(|line| line.contains("NCCL would take ") && line.ends_with(" us (policy)")));
    assert!(lines.iter().any(|line| line.ends_with("left to NCCL (fallback unsure)")));
    assert!(lines[256].ends_with("; later decisions are not logged"), "{}", lines[256]);
    assert!(said("5", &[("DYNAMICCL_MODE", "observe")]).iter().any(|line| line.contains("; would be ")));
    assert_eq!(said("5", &[("DYNAMICCL_MODE", "off")]).len(), 1);
    let lines = said("2", &[]);
    assert!(lines.len() == 1 && lines[0].contains("mode act (nothing is tuned"), "{lines:?}");
    let lines = said("2", &[("DYNAMICCL_DETERMINISTIC", "1")]);
    assert!(
        lines.len() == 2 && lines[1].contains("DYNAMICCL_DETERMINISTIC changes nothing with tuner v2"),
        "{lines:?}"
    );
}

/// What NCCL would take depends on nothing that is asked of us.
#[test]
fn what_nccl_would_take_is_said_whatever_a_tuner_is_held_to() {
    let taken = |set: &[(&str, &str)]| {
        let line = |line: &String| line.split_once(';').expect("a decision").0.to_owned();
        said("5", set)[1..].iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(taken(&[]), taken(&[("DYNAMICCL_DETERMINISTIC", "1")]));
}
