//! One number that stands for the whole encoding.

use crate::context::JobContext;
use crate::features::encode::Feedback;
use crate::features::{
    CONTEXT_WIDTH, CallContext, Encoder, FEATURES, HISTORY_WIDTH, Kind, PastCall, VERSION,
};
use crate::fnv::Fnv;
use crate::ids::{Collective, Pair};
use crate::table::CostTable;
use crate::{Choice, Compression, Role, Topology, TopologyClass, Workload};

/// The hash of the encoding: names, widths, ranges and labels, and the bits that some calls encode to.
/// Two builds with the same hash show a policy the same numbers.
pub fn hash() -> u64 {
    let mut hash = Fnv::new();
    hash.text(VERSION);
    for feature in FEATURES {
        hash.text(feature.name);
        hash.numbers(&feature.range());
        hash.number(feature.width() as u64);
        if let Kind::Word(label, len) = feature.kind {
            (0..len).filter_map(label).for_each(|label| hash.text(&label));
        }
    }
    for probe in 0..8 {
        let (context, history) = encoded(probe);
        hash.numbers(&context);
        hash.numbers(&history);
    }
    hash.value()
}

/// A call that exercises every feature a little differently for each number.
fn encoded(probe: u32) -> ([f32; CONTEXT_WIDTH], [f32; HISTORY_WIDTH]) {
    let mut job = JobContext {
        topology: Topology {
            ranks: 3 << probe,
            nodes: 1 + probe,
            class: TopologyClass::from_id(probe as usize).unwrap_or_default(),
            tier_max: probe.checked_sub(1).map(|tier| tier as u8),
            tier_mix: (probe > 1).then_some([0.1, 0.2, 0.3, 0.25, 0.15]),
            in_network: (probe > 2).then_some(probe & 1 == 0),
            ..Topology::default()
        },
        workload: Workload {
            tau: probe * 3,
            compression: Compression::from_id(probe as usize).unwrap_or_default(),
            compression_rate: probe as f32 * 1.7,
            ..Workload::default()
        },
        ..JobContext::default()
    };
    job.scheduler.role = Role::from_id(probe as usize % 5).unwrap_or_default();
    job.scheduler.stage = (probe > 3).then_some(probe as u8);
    job.llm.params = f64::from(probe) * 7.3e8;
    let mut table = CostTable::default();
    for pair in Pair::all().step_by(1 + probe as usize % 3) {
        table.set(pair, 3.7 + (pair.index() as f32 + 0.5) * (1 + probe) as f32);
    }
    let call = CallContext {
        collective: Collective::from_id(probe as usize).unwrap_or(Collective::AllReduce),
        bytes: 1000 << (3 * probe),
        pipelined: 1 + probe,
        table,
        pairs: table.mask(),
        synthesised: (probe > 4).then_some(probe as f32 * 5.1),
    };
    let feedback = Feedback { ratio: 0.3, expected: -0.2, cusum: 0.7, error: 1.9, congestion: 0.4 };
    let past = PastCall {
        choice: (probe > 0).then_some(Choice([0, 4, probe as u8, 2, 1])),
        launched: probe,
        since_kind: probe.checked_sub(2),
        since_feedback: probe.checked_sub(3),
        feedback: (probe > 2).then_some(feedback),
    };
    let (mut context, mut history) = ([0.0; CONTEXT_WIDTH], [0.0; HISTORY_WIDTH]);
    Encoder::new(&job).context(&call, &mut context);
    Encoder::history(&past, &mut history);
    (context, history)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that was frozen with another number is refused. If this fails, the encoding has changed:
    /// give it a new version, then the new number.
    #[test]
    fn the_encoding_is_the_one_that_policies_were_trained_with() {
        assert_eq!((VERSION, format!("{:016x}", hash()).as_str()), ("feat-v3", "3b0ce6ce7a2ceb14"));
    }
}
