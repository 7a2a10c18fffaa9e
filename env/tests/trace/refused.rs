//! Each way to be wrong has its own error, with the place, the value and the remedy.

use std::path::Path;

use dynamiccl_env::trace::{Trace, TraceError};

const HEADER: &str = r#"{"schema":"dynamiccl-trace-1","communicators":[{"id":"a","ranks":8,"nodes":2}]}"#;

fn refusal(text: &str) -> TraceError {
    Trace::read_from(text.as_bytes(), Path::new("t.jsonl")).unwrap_err()
}

fn with_call(call: &str) -> String {
    refusal(&format!("{HEADER}\n{call}\n")).to_string()
}

#[test]
fn calls() {
    for (call, message) in [
        ("{", "t.jsonl:2: is no JSON object: \"{\"; write one JSON object per line (EOF"),
        ("[1]", "t.jsonl:2: is no JSON object: \"[1]\"; write one JSON object per line"),
        (r#"{"coll":"allreduce","bytes":1}"#, "t.jsonl:2: lacks \"comm\"; add it"),
        (r#"{"comm":"a","bytes":1}"#, "t.jsonl:2: lacks \"coll\"; add it"),
        (r#"{"comm":"a","coll":"allreduce"}"#, "t.jsonl:2: lacks \"bytes\"; add it"),
        (
            r#"{"comm":"b","coll":"allreduce","bytes":1}"#,
            "t.jsonl:2: unknown communicator \"b\"; list it among the header's communicators",
        ),
        (
            r#"{"comm":"a","coll":"alreduce","bytes":1}"#,
            "t.jsonl:2: bad coll \"alreduce\"; did you mean \"allreduce\"? give one of broadcast",
        ),
        (
            r#"{"comm":"a","coll":"allreduce","bytes":-1}"#,
            "t.jsonl:2: bad bytes \"-1\"; give a whole number from 0 to 1125899906842624",
        ),
        (r#"{"comm":"a","coll":"allreduce","bytes":1.5}"#, "t.jsonl:2: bad bytes \"1.5\""),
        (r#"{"comm":"a","coll":"allreduce","bytes":"1"}"#, "t.jsonl:2: bad bytes \"1\""),
        (r#"{"comm":"a","coll":"allreduce","bytes":9999999999999999}"#, "t.jsonl:2: bad bytes"),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"us":-2}"#, "t.jsonl:2: bad us \"-2\"; give µs"),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"t_us":1e300}"#, "t.jsonl:2: bad t_us"),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"algo":"rng"}"#, "did you mean \"ring\"?"),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"proto":7}"#, "bad proto \"7\"; give a text in quotes"),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"nchannels":65}"#, "bad nchannels \"65\""),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"pipelined":0}"#, "bad pipelined \"0\""),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"stage":256}"#, "bad stage \"256\""),
        (r#"{"comm":"a","coll":"allreduce","bytes":1,"role":"intrastage2"}"#, "bad role"),
        (
            r#"{"comm":"a","coll":"allreduce","bytes":1,"nchanels":2}"#,
            "t.jsonl:2: unknown key \"nchanels\"; did you mean \"nchannels\"? known here: comm, coll",
        ),
        (
            r#"{"comm":"a","coll":"allreduce","bytes":1,"bytes":2}"#,
            "t.jsonl:2: repeats the key \"bytes\"; give it once",
        ),
    ] {
        let said = with_call(call);
        assert!(said.contains(message), "{call}: {said}");
    }
}

#[test]
fn headers() {
    for (header, message) in [
        ("", "t.jsonl: holds no calls: \"nothing\"; give a header line and at least one call"),
        (HEADER, "t.jsonl: holds no calls: \"no call\"; add a line for each call"),
        (r#"{"comm":"a"}"#, "t.jsonl:1: is no trace: \"first line\"; start with {\"schema\""),
        (
            r#"{"schema":"dynamiccl-trace-2","communicators":[]}"#,
            "t.jsonl:1: unknown format version \"dynamiccl-trace-2\"; this release reads dynamiccl-trace-1",
        ),
        (r#"{"schema":"dynamiccl-trace-1"}"#, "t.jsonl:1: lacks \"communicators\""),
        (r#"{"schema":"dynamiccl-trace-1","communicators":[]}"#, "bad communicators \"[]\""),
        (r#"{"schema":"dynamiccl-trace-1","communicators":[3]}"#, "bad communicators \"3\"; give an object"),
        (
            r#"{"schema":"dynamiccl-trace-1","communicators":[{"id":"a","ranks":2,"nodes":3}]}"#,
            "bad nodes \"3\"; give a whole number from 1 to 2",
        ),
        (
            r#"{"schema":"dynamiccl-trace-1","communicators":[{"id":"a","ranks":8,"nodes":2,"ranks_per_node":3}]}"#,
            "bad ranks_per_node \"3\"; give a whole number from 4 to 7",
        ),
        (
            r#"{"schema":"dynamiccl-trace-1","communicators":[{"id":"a","ranks":8,"nodes":2,"gpus":3}]}"#,
            "unknown key \"gpus\"",
        ),
        (
            r#"{"schema":"dynamiccl-trace-1","communicators":[{"id":"a","ranks":1,"nodes":1},{"id":"a","ranks":1,"nodes":1}]}"#,
            "t.jsonl:1: repeats the communicator \"a\"",
        ),
        (
            r#"{"schema":"dynamiccl-trace-1","communicators":[{"id":"a","ranks":1,"nodes":1,"ranks":2}]}"#,
            "t.jsonl:1: repeats the key \"ranks\"; give it once",
        ),
        (r#"{"schema":"dynamiccl-trace-1","nodes":0,"communicators":[]}"#, "bad nodes \"0\""),
        (
            r#"{"schema":"dynamiccl-trace-1","clustr":"x","communicators":[{"id":"a","ranks":1,"nodes":1}]}"#,
            "did you mean \"cluster\"?",
        ),
    ] {
        let said = refusal(header).to_string();
        assert!(said.contains(message), "{header}: {said}");
    }
}

/// As many keys as a line has room for are compared in the time that it takes to read them.
#[test]
fn a_line_of_many_keys() {
    let keys = (0..500_000).map(|at| format!(r#""k{at}":0,"#)).collect::<String>();
    let said = with_call(&format!(r#"{{{keys}"comm":"a","coll":"allreduce","bytes":1}}"#));
    assert!(said.contains("t.jsonl:2: unknown key \"k"), "{said}");
    let said = with_call(&format!(r#"{{"comm":"a",{keys}"k7":1}}"#));
    assert!(said.contains("t.jsonl:2: repeats the key \"k7\""), "{said}");
}

#[test]
fn the_inspectors_lines() {
    let line = |header: &str, version: &str, perf: &str| {
        format!(
            r#"{{"header":{header},"metadata":{{"inspector_output_format_version":"{version}"}},{perf}}}"#
        )
    };
    let header = r#"{"id":"0x1","rank":0,"n_ranks":8,"nnodes":1}"#;
    let perf =
        r#""coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":8192,"coll_exec_time_us":9}"#;
    assert!(Trace::read_from(line(header, "v4.0", perf).as_bytes(), Path::new("t")).is_ok());
    for (text, message) in [
        (line(header, "v5.0", perf), "unknown format version \"v5.0\"; this release reads v4"),
        (line(r#"{"id":"0x1","rank":8,"n_ranks":8,"nnodes":1}"#, "v4.0", perf), "bad rank \"8\""),
        (line(r#"{"id":"0x1","rank":0,"nnodes":1}"#, "v4.0", perf), "lacks \"n_ranks\""),
        (line(header, "v4.0", r#""other":1"#), "lacks \"coll_perf\""),
        (line(header, "v4.0", &perf.replace("AllReduce", "AllRedce")), "bad coll \"AllRedce\""),
        (line(header, "v4.0", &perf.replace("8192", "-1")), "bad coll_msg_size_bytes \"-1\""),
        (
            format!(
                "{}\n{}",
                line(header, "v4.0", perf),
                line(header, "v4.0", &perf.replace("8192", "4096"))
            ),
            "t.jsonl:2: contradicts an earlier line: \"AllReduce 1 with 4096 bytes\"; ranks disagree",
        ),
        (
            format!(
                "{}\n{}",
                line(header, "v4.0", perf),
                line(r#"{"id":"0x1","rank":0,"n_ranks":4,"nnodes":1}"#, "v4.0", perf)
            ),
            "contradicts an earlier line: \"0x1 with 4 ranks on 1 nodes\"",
        ),
    ] {
        let said = refusal(&text).to_string();
        assert!(said.contains(message), "{text}: {said}");
    }
}

#[test]
fn what_is_no_text_or_not_there() {
    let missing = Trace::read(Path::new("/no/such/trace.jsonl")).unwrap_err();
    assert!(matches!(missing, TraceError::Unreadable(_)), "{missing}");
    assert!(missing.to_string().contains("check the path"), "{missing}");
    let bytes = [HEADER.as_bytes(), b"\n\xff\xfe\n"].concat();
    let binary = Trace::read_from(bytes.as_slice(), Path::new("t")).unwrap_err();
    assert!(matches!(binary, TraceError::NotText(_)), "{binary}");
    let long = format!("{HEADER}\n{{\"comm\":\"{}\"}}", "a".repeat(17 << 20));
    assert!(matches!(refusal(&long), TraceError::LongLine(_)));
    let deep = format!("{HEADER}\n{{\"comm\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(matches!(refusal(&deep), TraceError::NotJson(_)));
}
