//! No bytes can do worse than be refused with one line.

use std::path::Path;

use dynamiccl_env::trace::{Header, Trace, TracedCall, TracedComm};
use dynamiccl_spec::{Algorithm, Collective, Protocol, Role};
use proptest::prelude::*;

use crate::file;
use crate::write::written;

const SAMPLES: [&str; 4] =
    ["job.jsonl", "inspector.jsonl", "inspector-verbose.jsonl", "profile/dynamiccl-n0-11-5.jsonl"];

/// Replaces, removes, doubles or adds bytes.
fn mutate(mut bytes: Vec<u8>, edits: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (at, kind, value) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match kind % 5 {
            0 => bytes[at] = *value,
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, *value),
            3 => bytes.truncate(at),
            _ => {
                let end = (at + usize::from(*value)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Trace::read_from(bytes, Path::new("mutated.jsonl")) {
        Ok(trace) => {
            prop_assert!(!trace.calls.is_empty());
            prop_assert!(trace.calls.iter().all(|call| trace.communicator(call).is_some()));
        }
        Err(error) => {
            let said = error.to_string();
            prop_assert!(said.starts_with("mutated.jsonl") && said.contains("; "), "{}", said);
            prop_assert!(!said.contains('\n') && said.chars().count() < 600, "{}", said);
            prop_assert!(!error.fault().remedy.is_empty());
        }
    }
    Ok(())
}

fn word<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(move |at| all[at])
}

fn any_call(comms: u32) -> impl Strategy<Value = TracedCall> {
    let times = (prop::option::of(0..1_000_000_000_000u64), prop::option::of(0..10_000_000_000u64));
    let knobs = (
        prop::option::of(word(Algorithm::ALL)),
        prop::option::of(word(Protocol::ALL)),
        prop::option::of(1u32..=64),
    );
    let rest = (1u32..100, prop::option::of(any::<u8>()), word(Role::ALL));
    (0..comms, word(Collective::ALL), 0..=1u64 << 50, times, knobs, rest).prop_map(
        |(comm, collective, bytes, (start, duration), (algorithm, protocol, channels), rest)| TracedCall {
            comm,
            collective,
            bytes,
            start_us: start.map(|ns| ns as f64 / 1e3),
            duration_us: duration.map(|ns| ns as f64 / 1e3),
            algorithm,
            protocol,
            channels,
            pipelined: rest.0,
            stage: rest.1,
            role: rest.2,
        },
    )
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let comm = (1u32..5, 1u32..9, word(Role::ALL), ".{0,8}");
    let comms = prop::collection::vec(comm, 1..5);
    (comms, prop::option::of("[ -~]{1,12}")).prop_flat_map(|(comms, cluster)| {
        let named = |(at, (nodes, per_node, role, name)): (usize, (u32, u32, Role, String))| TracedComm {
            id: format!("{at}{name}"),
            ranks: nodes * per_node,
            nodes,
            ranks_per_node: per_node,
            role,
        };
        let communicators: Vec<TracedComm> = comms.into_iter().enumerate().map(named).collect();
        let count = communicators.len() as u32;
        let header = Header { cluster, nodes: Some(3), communicators };
        prop::collection::vec(any_call(count), 1..20).prop_map(move |calls| Trace {
            header: header.clone(),
            calls,
            warnings: Vec::new(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn mutated_files(
        sample in 0..SAMPLES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 1..8),
    ) {
        check(&mutate(std::fs::read(file(SAMPLES[sample])).unwrap(), &edits))?;
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn any_trace_is_read_back_to_the_bit(trace in any_trace()) {
        prop_assert_eq!(Trace::read_from(written(&trace).as_slice(), Path::new("again")).unwrap(), trace);
    }
}
