//! One communicator as the model sees it: how many ranks, how fast its links, what a hop costs.
//!
//! Everything that does not depend on the call is worked out here once, so that the time of a call is
//! a few multiplications. Bandwidths are bytes per µs inside the model.

use crate::cluster::{Cluster, Inter};
use crate::model::constants::{Arch, Call, Collnet, Constants, Hop, Nvls, Pat, Rooted, Tree};
use crate::world::Conditions;

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
    /// Payload bytes per µs that LL carries between nodes.
    pub ll_bandwidth: f64,
    /// Bytes per µs that a shaper lets a node send on average.
    pub shaped_bandwidth: f64,
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
    /// What holds for every collective.
    pub call: Call,
    /// What only trees have.
    pub tree: Tree,
    /// What only NVLS has.
    pub nvls: Nvls,
    /// What only PAT has.
    pub pat: Pat,
    /// What only CollNet has.
    pub collnet: Collnet,
    /// What only broadcast and reduce have.
    pub rooted: Rooted,
}

impl Fabric {
    /// The fabric of `nodes` nodes with `local` ranks each.
    pub fn new(cluster: &Cluster, nodes: u32, local: u32, heads: u32, constants: &Constants) -> Self {
        let calibration = cluster.calibration;
        let mut fabric = Fabric {
            ranks: f64::from(nodes) * f64::from(local),
            nodes: f64::from(nodes),
            local: f64::from(local),
            intra_bandwidth: cluster.intra.bandwidth
                * PER_MICRO
                * calibration.intra_bandwidth
                * constants.bandwidth.intra,
            inter_bandwidth: f64::INFINITY,
            ll_bandwidth: constants.call.ll_between * PER_MICRO,
            shaped_bandwidth: f64::INFINITY,
            host_bandwidth: f64::INFINITY,
            lanes: 1.0,
            intra: slowed(constants.hop.intra(cluster.intra.link), calibration.intra_latency),
            inter: constants.hop.infiniband,
            ring_detour: 0.0,
            tree_detour: 0.0,
            depth: f64::from(ceil_log2(nodes)),
            heads: f64::from(heads.max(1)),
            arch: *constants.arch.of(cluster.gpu.sm),
            call: constants.call,
            tree: constants.tree,
            nvls: constants.nvls,
            pat: constants.pat,
            collnet: constants.collnet,
            rooted: if nodes > 1 { constants.rooted.network } else { constants.rooted.node },
        };
        fabric.arch.channel_rate =
            fabric.arch.channel_rate.map(|rate| rate * PER_MICRO * calibration.channel_rate);
        if let Some(inter) = cluster.inter.as_ref().filter(|_| nodes > 1) {
            fabric.connect(cluster, inter, constants);
        }
        let crossed = if fabric.crosses() { fabric.inter } else { fabric.intra };
        fabric.start_with(calibration.launch, crossed.launch);
        fabric
    }

    /// Scales what a call pays before its first step; `shown` is what back-to-back calls do not hide.
    fn start_with(&mut self, factor: f64, shown: f64) {
        self.call.launch = self.call.launch.map(|us| us * factor * shown);
        self.nvls.start *= factor;
        self.rooted.broadcast = self.rooted.broadcast.map(|us| us * factor);
        self.rooted.reduce = self.rooted.reduce.map(|us| us * factor);
    }

    fn connect(&mut self, cluster: &Cluster, inter: &Inter, constants: &Constants) {
        let calibration = cluster.calibration;
        self.inter = *constants.hop.inter(inter.link);
        if let Some(hop) = inter.hop {
            // The file states whole hops; what the CPU adds per channel is part of them.
            for (alpha, (whole, serial)) in
                self.inter.alpha.iter_mut().zip(hop.into_iter().zip(self.inter.serial))
            {
                *alpha = (whole - serial).max(0.0);
            }
        }
        self.inter = slowed(&self.inter, calibration.inter_latency);
        for alpha in &mut self.inter.alpha {
            *alpha += inter.propagation;
        }
        let reached = PER_MICRO * calibration.inter_bandwidth * constants.bandwidth.inter;
        self.lanes = f64::from(inter.nics.max(1)).min(self.local);
        let bandwidth = if inter.shaped { &mut self.shaped_bandwidth } else { &mut self.inter_bandwidth };
        *bandwidth = inter.bandwidth * reached;
        self.host_bandwidth = self.inter.ceiling * self.local * reached;
        for level in cluster.tiers.iter().filter(|level| f64::from(level.nodes) <= self.nodes) {
            let group = f64::from(level.nodes.max(2) - 1);
            let groups = (self.nodes / group).ceil();
            self.ring_detour += level.hop_latency * groups / self.ranks;
            self.tree_detour += level.hop_latency * f64::from(ceil_log2(groups as u32)).min(self.depth);
            self.inter_bandwidth *= level.bandwidth_share;
            self.shaped_bandwidth *= level.bandwidth_share;
        }
    }

    /// The same fabric in these conditions.
    pub fn under(&self, conditions: &Conditions) -> Self {
        let mut fabric = *self;
        let left = (1.0 - conditions.load) * conditions.nics * conditions.bandwidth * conditions.speed;
        fabric.inter_bandwidth *= left;
        fabric.shaped_bandwidth *= left;
        fabric.intra_bandwidth *= conditions.speed;
        fabric.host_bandwidth *= conditions.speed;
        fabric.arch.channel_rate = self.arch.channel_rate.map(|rate| rate * conditions.speed);
        fabric.inter.alpha = self.inter.alpha.map(|us| us * conditions.latency / conditions.speed);
        fabric
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
