//! The calls about which every rank's plugin is asked: the same on every machine, to the bit.
//!
//! The tables are none that NCCL made, but shaped like its own: a latency and a bandwidth for every algorithm and
//! protocol, some missing. They cover the sizes and the shapes of communicators that jobs have.

use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};
use dynamiccl_spec::table::UNAVAILABLE;
use dynamiccl_spec::{Algorithm, Collective};

/// Ranks and nodes of the communicators.
pub const SHAPES: [(usize, usize); 9] =
    [(2, 1), (4, 1), (8, 1), (2, 2), (4, 4), (16, 2), (32, 4), (64, 8), (256, 32)];

/// NCCL's table.
pub type Costs = [[f32; PROTOCOLS]; ALGORITHMS];

/// A call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// The collective.
    pub collective: Collective,
    /// Its bytes.
    pub bytes: usize,
    /// Operations in the launch.
    pub pipelined: i32,
    /// NCCL's prediction.
    pub costs: Costs,
}

/// Latency in µs of a step and bandwidth in bytes per µs, by algorithm, for Simple; LL has a sixth of the latency
/// and a third of the bandwidth, LL128 a third and nine tenths.
const LATENCY: [f32; ALGORITHMS] = [6.0, 8.0, 12.0, 14.0, 9.0, 11.0, 7.0];
const BANDWIDTH: [f32; ALGORITHMS] = [90e3, 120e3, 100e3, 95e3, 150e3, 140e3, 80e3];
const SLOWER: [(f32, f32); PROTOCOLS] = [(6.0, 3.0), (3.0, 1.1), (1.0, 1.0)];

/// The calls of a communicator: every collective from 1 KiB to 1 GiB in powers of 4, and one in a group.
pub fn of(ranks: usize, nodes: usize) -> impl Iterator<Item = Call> {
    let sizes = (5..=15).map(|power| 1_usize << (2 * power));
    Collective::TUNED.into_iter().flat_map(move |collective| {
        sizes.clone().map(move |bytes| {
            let pipelined = if bytes == 1 << 20 { 4 } else { 1 };
            Call { collective, bytes, pipelined, costs: costs(collective, bytes, ranks, nodes) }
        })
    })
}

fn costs(collective: Collective, bytes: usize, ranks: usize, nodes: usize) -> Costs {
    let steps = ranks.ilog2() as f32;
    let mut costs = [[UNAVAILABLE; PROTOCOLS]; ALGORITHMS];
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| fits(**algorithm, collective, ranks, nodes)) {
        let at = algorithm.id();
        for (protocol, (latency, bandwidth)) in SLOWER.into_iter().enumerate() {
            if protocol + 1 < PROTOCOLS && !matches!(algorithm, Algorithm::Tree | Algorithm::Ring) {
                continue;
            }
            let waits = if algorithm == Algorithm::Ring { (ranks - 1) as f32 } else { steps };
            costs[at][protocol] =
                LATENCY[at] / latency * waits + bytes as f32 * bandwidth / BANDWIDTH[at] * nodes as f32;
        }
    }
    costs
}

fn fits(algorithm: Algorithm, collective: Collective, ranks: usize, nodes: usize) -> bool {
    let adds = collective == Collective::AllReduce;
    match algorithm {
        Algorithm::Ring => true,
        Algorithm::Tree => adds,
        Algorithm::Nvls => adds && ranks >= 4 * nodes,
        Algorithm::NvlsTree => adds && nodes > 1 && ranks >= 4 * nodes,
        Algorithm::Pat => {
            ranks == nodes && matches!(collective, Collective::AllGather | Collective::ReduceScatter)
        }
        Algorithm::CollnetDirect | Algorithm::CollnetChain => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_can_run_and_most_leave_a_choice() {
        let calls: Vec<Call> = SHAPES.into_iter().flat_map(|(ranks, nodes)| of(ranks, nodes)).collect();
        assert_eq!(calls.len(), 9 * 5 * 11);
        for call in &calls {
            let available = call.costs.as_flattened().iter().filter(|cost| **cost > 0.0).count();
            assert!(available >= 3, "{call:?}");
        }
        let seen = |algorithm: Algorithm| calls.iter().any(|call| call.costs[algorithm.id()][2] > 0.0);
        assert!(seen(Algorithm::Pat) && seen(Algorithm::Nvls) && seen(Algorithm::NvlsTree));
    }
}
