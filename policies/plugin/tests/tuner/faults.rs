//! What the user named and cannot be loaded.

use std::fs::write;

use crate::host::{PLAIN, run, scratch, wild_policy};

#[test]
fn what_was_named_and_cannot_be_loaded_stops_its_rank() {
    let policy = std::fs::read(wild_policy()).unwrap();
    let changed = |at: usize| {
        let mut changed = policy.clone();
        changed[at] ^= 1;
        changed
    };
    let header = "[cluster]\n";
    let files: &[(&str, &str, Vec<u8>)] = &[
        ("DYNAMICCL_POLICY", "empty", vec![]),
        ("DYNAMICCL_POLICY", "truncated-in-header", policy[..500].to_vec()),
        ("DYNAMICCL_POLICY", "truncated", policy[..policy.len() - 1].to_vec()),
        ("DYNAMICCL_POLICY", "longer", [&policy[..], b"x"].concat()),
        ("DYNAMICCL_POLICY", "foreign", b"[cluster]\ngpu = \"hopper\"\n".repeat(100)),
        ("DYNAMICCL_POLICY", "other-version", changed(20)),
        ("DYNAMICCL_POLICY", "corrupt", changed(policy.len() / 2)),
        ("DYNAMICCL_CONTEXT", "typo.toml", format!("{header}gpu = \"hoper\"\n").into()),
        ("DYNAMICCL_CONTEXT", "unknown-key.toml", format!("{header}gpuu = \"hopper\"\n").into()),
        ("DYNAMICCL_CONTEXT", "cut.toml", header[..5].into()),
        ("DYNAMICCL_CONTEXT", "no-text.toml", policy[..2000].to_vec()),
        (
            "DYNAMICCL_CONTEXT",
            "no-tier.toml",
            format!("{header}tiers = [{{ nodes = 1, tier = 7 }}]\n").into(),
        ),
    ];
    let mut arguments = vec!["faults".to_owned()];
    for (variable, name, bytes) in files {
        let path = scratch(name);
        write(&path, bytes).unwrap();
        arguments.extend([(*variable).to_owned(), path.display().to_string()]);
    }
    for variable in ["DYNAMICCL_POLICY", "DYNAMICCL_CONTEXT"] {
        arguments.extend([variable, "/nowhere/at/all"].map(str::to_owned));
        // A directory opens and cannot be read.
        arguments.extend([variable, env!("CARGO_TARGET_TMPDIR")].map(str::to_owned));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = run(&PLAIN, &arguments, &[]);
    assert!(run.succeeded && run.said.contains("16 faults in six versions"), "{}", run.said);
}

#[test]
fn a_variable_that_means_nothing_stops_its_rank() {
    let doubtful = run(&PLAIN, &["show", "5", "16", "2"], &[("DYNAMICCL_STRICT", "no")]);
    assert!(!doubtful.succeeded && doubtful.said.contains("write 1 or 0"), "{}", doubtful.said);
    for (variable, value, why) in [
        ("DYNAMICCL_MODE", "obsrve", "did you mean"),
        ("DYNAMICCL_DETERMINISTIC", "yes", "write 1 or 0"),
        ("DYNAMICCL_EXPECT", "this one", "write the hash"),
        ("DYNAMICCL_EXPECT", "0123456789abcdef", "not 0123456789abcdef"),
    ] {
        let refused = run(&PLAIN, &["show", "5", "16", "2"], &[(variable, value)]);
        assert!(!refused.succeeded && refused.said.contains(why), "{}", refused.said);
        // One line on the error stream, and the same in NCCL's log.
        assert_eq!(refused.said.matches(why).count(), 2, "{}", refused.said);
        assert_eq!(refused.said.lines().count(), 2, "{}", refused.said);
        let lenient = run(&PLAIN, &["show", "5", "16", "2"], &[(variable, value), ("DYNAMICCL_STRICT", "0")]);
        assert!(lenient.succeeded && lenient.said.contains(why), "{}", lenient.said);
    }
}
