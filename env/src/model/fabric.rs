//! One communicator as the model sees it: how many ranks, how fast its links, what a hop costs.
//!
//! Everything that does not depend on the call is worked out here once, so that the time of a call is
//! a few multiplications. Bandwidths are bytes per µs inside the model.

use crate::cluster::{Cluster, Inter, InterLink};
use crate::model::constants::{Arch, Constants, Hop};

/// Bytes per µs in one GB/s.
const PER_MICRO: f64 = 1e3;
/// Wire bytes per payload byte: LL sends a flag with every word, LL128 one with every 120 bytes.
pub const WIRE: [f64; 3] = [2.0, 128.0 / 120.0, 1.0];

/// How a communicator's ranks are connected, with every constant resolved.
#[derive(Debug, Clone, Copy)]
pub struct Fabric {
    /// Ranks.
    pub ranks: f64,
    /// Nodes.
    pub nodes: f64,
    /// Ranks per node.
    pub local: f64,
    /// Bytes per µs of one GPU inside the node, one way.
    pub intra_bandwidth: f64,
    /// Bytes per µs of one node's NICs together, one way.
    pub inter_bandwidth: f64,
    /// Bytes per µs that one node's CPUs move for the network, both ways together.
    pub host_bandwidth: f64,
    /// Proxy threads that share a node's channels.
    pub lanes: f64,
    /// A hop inside the node.
    pub intra: Hop,
    /// A hop between nodes.
    pub inter: Hop,
    /// µs that a ring step pays for hops across further levels of the network, on average.
    pub ring_detour: f64,
    /// µs that a path from a leaf to the root pays for them.
    pub tree_detour: f64,
    /// Network edges between a leaf and the root of a binary tree over the nodes.
    pub depth: f64,
    /// NVLS heads: GPUs that reduce a part each.
    pub heads: f64,
    /// The GPU's generation.
    pub arch: Arch,
    /// The rest of the constants.
    pub constants: Constants,
}

impl Fabric {
    /// The fabric of `nodes` nodes with `local` ranks each.
    pub fn new(cluster: &Cluster, nodes: u32, local: u32, heads: u32, constants: &Constants) -> Self {
        let calibration = cluster.calibration;
        let mut constants = *constants;
        constants.call.launch = constants.call.launch.map(|us| us * calibration.launch);
        constants.nvls.start *= calibration.launch;
        constants.rooted.broadcast = constants.rooted.broadcast.map(|us| us * calibration.launch);
        constants.rooted.reduce = constants.rooted.reduce.map(|us| us * calibration.launch);
        let mut arch = *constants.arch.of(cluster.gpu.sm);
        arch.channel_rate = arch.channel_rate.map(|rate| rate * PER_MICRO * calibration.channel_rate);
        let mut fabric = Fabric {
            ranks: f64::from(nodes) * f64::from(local),
            nodes: f64::from(nodes),
            local: f64::from(local),
            intra_bandwidth: cluster.intra.bandwidth * PER_MICRO * calibration.intra_bandwidth,
            inter_bandwidth: f64::INFINITY,
            host_bandwidth: f64::INFINITY,
            lanes: 1.0,
            intra: slowed(constants.hop.intra(cluster.intra.link), calibration.intra_latency),
            inter: slowed(constants.hop.inter(InterLink::Infiniband), calibration.inter_latency),
            ring_detour: 0.0,
            tree_detour: 0.0,
            depth: f64::from(ceil_log2(nodes)),
            heads: f64::from(heads.max(1)),
            arch,
            constants,
        };
        if let Some(inter) = cluster.inter.as_ref().filter(|_| nodes > 1) {
            fabric.connect(cluster, inter);
        }
        fabric
    }

    fn connect(&mut self, cluster: &Cluster, inter: &Inter) {
        let calibration = cluster.calibration;
        self.inter = slowed(self.constants.hop.inter(inter.link), calibration.inter_latency);
        for alpha in &mut self.inter.alpha {
            *alpha += inter.propagation;
        }
        self.lanes = f64::from(inter.nics.max(1)).min(self.local);
        self.inter_bandwidth = inter.bandwidth * PER_MICRO * calibration.inter_bandwidth;
        self.host_bandwidth = self.inter.ceiling * self.local * PER_MICRO * calibration.inter_bandwidth;
        for level in cluster.tiers.iter().filter(|level| f64::from(level.nodes) <= self.nodes) {
            let group = f64::from(level.nodes.max(2) - 1);
            let groups = (self.nodes / group).ceil();
            self.ring_detour += level.hop_latency * groups / self.ranks;
            self.tree_detour += level.hop_latency * f64::from(ceil_log2(groups as u32)).min(self.depth);
            self.inter_bandwidth *= level.bandwidth_share;
        }
    }

    /// Whether the communicator crosses the network.
    pub fn crosses(&self) -> bool {
        self.nodes > 1.0
    }
}

/// A hop whose latencies take `factor` times as long.
fn slowed(hop: &Hop, factor: f64) -> Hop {
    Hop {
        alpha: hop.alpha.map(|us| us * factor),
        serial: hop.serial.map(|us| us * factor),
        rendezvous: hop.rendezvous * factor,
        ..*hop
    }
}

/// The smallest whole power of two that reaches `x`.
pub fn ceil_log2(x: u32) -> u32 {
    x.max(1).next_power_of_two().trailing_zeros()
}
