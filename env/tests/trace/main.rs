//! Recorded jobs: every format, every way to be wrong, and no file that does worse than be refused.

mod profile;
mod refused;
mod robustness;
mod write;

use std::path::PathBuf;

use dynamiccl_env::trace::{Trace, TracedCall};
use dynamiccl_spec::{Algorithm, Collective, Protocol, Role};
use write::written;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces").join(name)
}

fn read(name: &str) -> Trace {
    Trace::read(&file(name)).unwrap()
}

/// Calls of the communicator at this position, in order.
fn calls_of(trace: &Trace, comm: u32) -> impl Iterator<Item = &TracedCall> {
    trace.calls.iter().filter(move |call| call.comm == comm)
}

#[test]
fn our_format() {
    let trace = read("job.jsonl");
    assert_eq!((trace.header.cluster.as_deref(), trace.header.nodes), (Some("dgx_h100"), Some(2)));
    let tensor = &trace.header.communicators[0];
    assert_eq!((tensor.ranks, tensor.nodes, tensor.ranks_per_node), (8, 1, 8));
    assert_eq!(trace.calls.len(), 5);
    let first = trace.calls[0];
    assert_eq!((first.algorithm, first.protocol), (Some(Algorithm::Nvls), Some(Protocol::Simple)));
    assert_eq!((first.channels, first.duration_us, first.role), (Some(16), Some(310.25), Role::IntraStage));
    let transfer = trace.calls[2];
    assert_eq!((transfer.role, transfer.stage, transfer.pipelined), (Role::ActivationSend, Some(0), 2));
    assert_eq!(trace.communicator(&transfer).unwrap().id, "pp");
    let sizes: Vec<u64> = calls_of(&trace, 1).map(|call| call.bytes).collect();
    assert_eq!(sizes, [26_214_400, 4]);
    let gaps: Vec<Option<f64>> = trace.gaps().collect();
    assert_eq!(gaps, [None, Some(590.25), Some(90.375), Some(2957.5), None]);
}

#[test]
fn the_inspectors_format_follows_one_rank_and_takes_the_shortest_time() {
    let trace = read("inspector.jsonl");
    let shapes: Vec<_> = trace.header.communicators.iter().map(|c| (c.ranks, c.nodes)).collect();
    assert_eq!(shapes, [(8, 1), (2, 2)]);
    let calls: Vec<_> =
        calls_of(&trace, 0).map(|call| (call.collective, call.bytes, call.duration_us.unwrap())).collect();
    // Rank 1 comes first in the file and waits 55 µs in each call; NCCL counts 8 ranks' parts.
    assert_eq!(
        calls,
        [
            (Collective::AllReduce, 33_554_432, 310.0),
            (Collective::AllGather, 8 << 20, 97.0),
            (Collective::ReduceScatter, 8 << 20, 101.0),
            (Collective::AllReduce, 33_554_432, 308.0),
        ]
    );
    let pairs: Vec<_> =
        calls_of(&trace, 1).map(|call| (call.collective, call.duration_us.unwrap())).collect();
    assert_eq!(pairs, [(Collective::SendRecv, 742.0), (Collective::SendRecv, 760.0)]);
    assert_eq!(trace.warnings.len(), 2, "{:?}", trace.warnings);
    assert!(trace.warnings[0].starts_with("1 operations"));
}

#[test]
fn a_verbose_dump_has_times_channels_and_the_order_of_the_job() {
    let trace = read("inspector-verbose.jsonl");
    let calls: Vec<_> =
        trace.calls.iter().map(|call| (call.comm, call.start_us.unwrap(), call.channels.unwrap())).collect();
    assert_eq!(calls, [(0, 0.0, 4), (1, 1000.0, 2), (0, 2000.0, 4), (1, 3000.0, 1)]);
    assert!(trace.warnings.is_empty());
}

#[test]
fn what_is_written_is_read_back() {
    for name in ["job.jsonl", "inspector.jsonl", "inspector-verbose.jsonl", "profile"] {
        let trace = Trace { warnings: Vec::new(), ..read(name) };
        let again = Trace::read_from(written(&trace).as_slice(), &file("again")).unwrap();
        assert_eq!(again, trace, "{name}");
    }
}
