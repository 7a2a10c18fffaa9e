//! What our own profiler writes, on all ranks of a job.

use std::fs;
use std::path::Path;

use dynamiccl_env::trace::{Trace, TraceError};
use dynamiccl_spec::{Algorithm, Collective, Protocol};

use crate::{file, read};

const HEADER: &str = r#"{"schema":"dynamiccl-profile-1","host":"n0","pid":7}"#;

fn parse(lines: &[&str]) -> Result<Trace, TraceError> {
    Trace::read_from(lines.join("\n").as_bytes(), Path::new("t.jsonl"))
}

#[test]
fn a_folder_is_one_process_of_the_job_with_the_shortest_time_of_any_rank() {
    let trace = read("profile");
    let comms: Vec<_> =
        trace.header.communicators.iter().map(|c| (c.id.as_str(), c.ranks, c.nodes)).collect();
    // 0xa1 is the other node's: the followed process, that of rank 0 of the largest, is not in it.
    assert_eq!(comms, [("0xd0", 4, 2), ("0xa0", 2, 1)]);
    let calls: Vec<_> = trace
        .calls
        .iter()
        .map(|call| (call.comm, call.collective, call.bytes, call.start_us.unwrap(), call.duration_us))
        .collect();
    // Both kinds have a number 0 and a number 1: they are told apart by kind.
    assert_eq!(
        calls,
        [
            (0, Collective::AllReduce, 1 << 20, 0.0, Some(70.0)),
            (1, Collective::AllReduce, 4096, 100.0, Some(17.0)),
            (0, Collective::AllGather, 1 << 22, 200.0, Some(210.0)),
            (0, Collective::AllReduce, 1 << 20, 300.0, Some(80.0)),
            (0, Collective::AllGather, 1 << 22, 400.0, None),
        ]
    );
    let first = trace.calls[1];
    assert_eq!(
        (first.algorithm, first.protocol, first.channels),
        (Some(Algorithm::Tree), Some(Protocol::LL), Some(1))
    );
    let said = trace.warnings.join("\n");
    assert_eq!(trace.warnings.len(), 3, "{said}");
    assert!(said.contains("2 collectives could not be recorded"), "{said}");
    assert!(said.contains("1 records have no time"), "{said}");
    assert!(said.contains("of 2 communicators not all ranks") && said.contains("of 0xd0: 3 of 4"), "{said}");
}

#[test]
fn files_one_after_the_other_are_the_same_job() {
    let names = ["n0-11-5.old", "n0-11-5", "n0-12-5", "n1-11-5", "n1-12-5"];
    let texts =
        names.map(|name| fs::read_to_string(file(&format!("profile/dynamiccl-{name}.jsonl"))).unwrap());
    let one = Trace::read_from(texts.concat().as_bytes(), Path::new("all")).unwrap();
    assert_eq!(one, read("profile"));
    let mut other_order = texts;
    other_order.reverse();
    assert_eq!(Trace::read_from(other_order.concat().as_bytes(), Path::new("all")).unwrap(), read("profile"));
}

/// A process may hold several ranks of a communicator; its lowest is followed.
#[test]
fn ranks_of_one_process_are_one_view() {
    let line = |rank: u32, us: &str| {
        format!(
            r#"{{"comm":"0x1","rank":{rank},"ranks":2,"nodes":1,"seq":5,"coll":"broadcast","bytes":8,"t_us":{rank},"us":{us},"clock":"gpu"}}"#
        )
    };
    let trace = parse(&[HEADER, &line(1, "3.5"), &line(0, "9")]).unwrap();
    assert_eq!((trace.calls.len(), trace.calls[0].duration_us), (1, Some(3.5)));
    assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
}

/// In a container the processes of two runs have the same id.
#[test]
fn processes_of_one_id_are_told_apart_by_when_they_began() {
    let line = |comm: &str| {
        format!(
            r#"{{"comm":"{comm}","rank":0,"ranks":1,"nodes":1,"seq":0,"coll":"broadcast","bytes":8,"t_us":1,"us":2,"clock":"gpu"}}"#
        )
    };
    let followed = |first: &str, second: &str| {
        parse(&[first, &line("0x1"), second, &line("0x2")]).unwrap().header.communicators.len()
    };
    let began = |start: u32| HEADER.replace('}', &format!(",\"start\":{start}}}"));
    assert_eq!(followed(&began(5), &began(5)), 2);
    assert_eq!(followed(&began(5), &began(6)), 1);
    assert_eq!(followed(HEADER, HEADER), 2, "earlier releases do not say");
    let said = parse(&[&HEADER.replace('}', ",\"start\":\"now\"}")]).unwrap_err().to_string();
    assert!(said.contains("bad start"), "{said}");
}

/// Profiler v1 to v3 do not say how large a communicator is.
#[test]
fn an_unsaid_size_is_what_was_seen() {
    let line = |rank: u32| {
        format!(
            r#"{{"comm":"0x1","rank":{rank},"seq":0,"coll":"allgather","part_bytes":1024,"nchannels_max":24,"warps":8,"t_us":5,"us":2.5,"clock":"host"}}"#
        )
    };
    let other = HEADER.replace("n0", "n1");
    let trace = parse(&[HEADER, &line(0), &line(1), &other, &line(2), &line(3)]).unwrap();
    let comm = &trace.header.communicators[0];
    assert_eq!((comm.ranks, comm.nodes, trace.calls[0].bytes), (4, 2, 4096));
}

#[test]
fn what_is_refused() {
    let call = r#"{"comm":"0x1","rank":0,"ranks":2,"nodes":1,"seq":5,"coll":"broadcast","bytes":8,"t_us":1,"us":2,"clock":"gpu"}"#;
    assert!(parse(&[HEADER, call]).is_ok());
    for (from, to, message) in [
        ("\"rank\":0", "\"rank\":2", "t.jsonl:2: bad rank \"2\"; give a whole number from 0 to 1"),
        ("\"nodes\":1", "\"nodes\":3", "bad nodes \"3\""),
        ("\"nodes\":1,", "", "lacks \"nodes\""),
        ("\"bytes\":8,", "", "lacks \"part_bytes\""),
        ("\"seq\":5,", "", "lacks \"seq\""),
        ("broadcast", "brodcast", "did you mean \"broadcast\"?"),
        ("gpu", "gpx", "bad clock \"gpx\"; give one of gpu, host, launch"),
        ("\"us\":2", "\"us\":-2", "bad us \"-2\""),
        ("\"t_us\":1", "\"t_s\":1", "unknown key \"t_s\"; did you mean \"t_us\"?"),
    ] {
        let said = parse(&[HEADER, &call.replace(from, to)]).unwrap_err().to_string();
        assert!(said.contains(message), "{to}: {said}");
    }
    let larger = call.replace("\"bytes\":8", "\"bytes\":9");
    let said = parse(&[HEADER, call, &larger]).unwrap_err().to_string();
    assert!(said.contains("contradicts an earlier line: \"broadcast 5 with 9 bytes\""), "{said}");
    let wider = call.replace("\"ranks\":2", "\"ranks\":4");
    let said = parse(&[HEADER, call, &wider]).unwrap_err().to_string();
    assert!(said.contains("0x1 with 4 ranks on 1 nodes"), "{said}");
    let said = parse(&[HEADER]).unwrap_err().to_string();
    assert!(said.contains("holds no calls"), "{said}");
    let other = HEADER.replace("profile-1", "profile-2");
    assert!(parse(&[HEADER, call, &other]).unwrap_err().to_string().contains("profile-2"));
}

#[test]
fn a_folder_holds_nothing_else() {
    let said = Trace::read(file("job.jsonl").parent().unwrap()).unwrap_err().to_string();
    assert!(said.contains("give this file by itself"), "{said}");
    let empty = Trace::read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err().to_string();
    assert!(empty.contains("holds no calls"), "{empty}");
}

/// NCCL numbers the collectives of each kind apart, and its inspector writes these numbers.
#[test]
fn the_inspectors_numbers_are_those_of_a_kind() {
    let line = |rank: u32, coll: &str, bytes: u32, us: u32| {
        format!(
            r#"{{"header":{{"id":"0x1","rank":{rank},"n_ranks":2,"nnodes":1}},"metadata":{{"inspector_output_format_version":"v4.0"}},"coll_perf":{{"coll":"{coll}","coll_sn":0,"coll_msg_size_bytes":{bytes},"coll_exec_time_us":{us}}}}}"#
        )
    };
    let lines = [
        line(0, "AllReduce", 64, 50),
        line(0, "Broadcast", 32, 20),
        line(1, "AllReduce", 64, 40),
        line(1, "Broadcast", 32, 30),
    ];
    let trace = parse(&lines.each_ref().map(String::as_str)).unwrap();
    let calls: Vec<_> = trace.calls.iter().map(|call| (call.bytes, call.duration_us.unwrap())).collect();
    assert_eq!(calls, [(64, 40.0), (32, 20.0)]);
}
