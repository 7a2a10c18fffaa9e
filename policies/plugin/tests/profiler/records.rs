//! What is recorded, by every version.

use std::fs;

use dynamiccl_env::trace::Trace;
use dynamiccl_spec::{Algorithm, Collective, Protocol};

use crate::host::{Folder, run, run_sanitized};

#[test]
fn every_version_records_what_it_is_told() {
    for version in 1..=6 {
        let folder = Folder::new(&format!("records-{version}"));
        let said = run_sanitized("records", version, &[("DYNAMICCL_PROFILE", folder.path())]);
        let mask = if version < 3 { 2 } else { 2 | 64 };
        assert_eq!(said, format!("mask {mask} warnings 0\n"), "v{version}");
        let calls = folder.calls();
        assert_eq!(calls.len(), 3, "v{version}");
        for (call, (coll, seq, bytes, us)) in calls.iter().zip([
            ("allreduce", 7, 1_048_576, 61.974),
            ("allgather", 0, 16_384, 5.0),
            ("broadcast", 1, 4, 4.0),
        ]) {
            assert_eq!((call["comm"].as_str(), &call["rank"]), (Some("0xfeedf00dcafe"), &3.into()));
            assert_eq!((call["coll"].as_str(), &call["seq"]), (Some(coll), &seq.into()), "v{version}");
            assert_eq!((call["algo"].as_str(), call["proto"].as_str()), (Some("ring"), Some("simple")));
            assert_eq!(call["warps"], 16);
            // v3 says neither the communicator's size nor its traffic.
            let part = version == 3 && coll == "allgather";
            assert_eq!(call[if part { "part_bytes" } else { "bytes" }], if part { 4096 } else { bytes });
            let channels = if coll == "allreduce" { 2 } else { 1 };
            let counted = if version < 3 { "nchannels_max" } else { "nchannels" };
            assert_eq!(call[counted], channels, "v{version}");
            let clock = ["launch", "launch", "host", "gpu", "gpu", "gpu"][version as usize - 1];
            assert_eq!(call["clock"], clock, "v{version}");
            if version >= 4 {
                assert_eq!(call["us"], us, "v{version}");
                assert_eq!((&call["ranks"], &call["nodes"]), (&4.into(), &2.into()));
            }
        }
    }
}

#[test]
fn the_environment_replays_what_is_recorded() {
    let folder = Folder::new("replayed");
    run("records", 6, &[("DYNAMICCL_PROFILE", folder.path())]);
    let trace = Trace::read(folder.path()).unwrap();
    let comm = &trace.header.communicators[0];
    assert_eq!((comm.id.as_str(), comm.ranks, comm.nodes), ("0xfeedf00dcafe", 4, 2));
    let calls: Vec<_> = trace.calls.iter().map(|c| (c.collective, c.bytes, c.duration_us.unwrap())).collect();
    assert_eq!(
        calls,
        [
            (Collective::AllReduce, 1_048_576, 61.974),
            (Collective::AllGather, 16_384, 5.0),
            (Collective::Broadcast, 4, 4.0),
        ]
    );
    let first = trace.calls[0];
    assert_eq!((first.algorithm, first.protocol), (Some(Algorithm::Ring), Some(Protocol::Simple)));
    assert_eq!((first.channels, first.start_us), (Some(2), Some(0.0)));
    assert!(trace.warnings[0].contains("1 of 4"), "{:?}", trace.warnings);
    for version in 1..=3 {
        let old = Folder::new(&format!("replayed-{version}"));
        run("records", version, &[("DYNAMICCL_PROFILE", old.path())]);
        let trace = Trace::read(old.path()).unwrap();
        assert_eq!(
            trace.calls.iter().filter(|c| c.duration_us.is_some()).count(),
            [0, 0, 3][version as usize - 1]
        );
    }
}

#[test]
fn nothing_is_written_unless_it_is_asked_for() {
    for version in 1..=6 {
        assert_eq!(run("off", version, &[("DYNAMICCL_PROFILE", "")]), "warnings 0\n");
    }
    let folder = Folder::new("off");
    let off = [("DYNAMICCL_PROFILE", folder.path().to_str().unwrap()), ("DYNAMICCL_MODE", "off")];
    assert_eq!(run("off", 6, &off), "warnings 0\n");
    assert!(!folder.path().exists());
    // A folder that cannot be is one warning and no recording.
    let said = run("off", 6, &[("DYNAMICCL_PROFILE", "/dev/null/x")]);
    assert!(said.starts_with("WARN DynamICCL: profiler: no records are written: "), "{said}");
    assert!(said.ends_with("warnings 1\n"), "{said}");
    // Old NCCL gives no log: stderr has it.
    let said = run("off", 2, &[("DYNAMICCL_PROFILE", "/dev/null/x")]);
    assert!(said.contains("DynamICCL: profiler: no records are written: "), "{said}");
}

#[test]
fn metrics_are_one_file_that_is_whole() {
    let folder = Folder::new("metrics");
    let variables = [("DYNAMICCL_PROMETHEUS", folder.path().to_str().unwrap()), ("LOCAL_RANK", "5")];
    run_sanitized("records", 6, &variables);
    let names = folder.names();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with("dynamiccl-") && names[0].ends_with("-5.prom"), "{names:?}");
    let text = fs::read_to_string(folder.path().join(&names[0])).unwrap();
    let line =
        text.lines().find(|l| l.starts_with("nccl_collective_exec_time") && l.contains("AllReduce")).unwrap();
    for label in [
        r#"comm_name="tp""#,
        r#"n_nodes="2""#,
        r#"nranks="4""#,
        r#"message_size="1-2MB""#,
        r#"algo_proto="RING_SIMPLE""#,
        r#"process="5""#,
    ] {
        assert!(line.contains(label), "{label}: {line}");
    }
    assert!(line.ends_with(" 61.974"), "{line}");
    assert!(text.contains("dynamiccl_profile_records_total{") && text.contains("} 3\n"), "{text}");
}
