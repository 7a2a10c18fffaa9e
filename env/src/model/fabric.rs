//! One communicator as the model sees it: how many ranks, how fast its links, what a hop costs.
//!
//! Everything that does not depend on the call is worked out here once, so that the time of a call is
//! a few multiplications. Bandwidths are bytes per µs inside the model.

use crate::cluster::{Cluster, Inter, InterLink};
use crate::model::Conditions;
use crate::model::constants::{
    Aggregation, Arch, Call, Collnet, Constants, Hop, Nvls, Pat, Rooted, Transfer, Tree,
};
use crate::model::wiring::Ways;

/// Bytes per µs in one GB/s.
const PER_MICRO: f64 = 1e3;
/// Wire bytes per payload byte: LL sends a flag with every word, LL128 one with every 120 bytes.
pub const WIRE: [f64; 3] = [2.0, 128.0 / 120.0, 1.0];

/// Most of a network that others take from a call of a low class.
const MOST_LOAD: f64 = 0.95;

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
    /// NICs per node.
    pub nics: f64,
    /// Share of the node's NICs that this communicator's ranks drive.
    pub nic_share: f64,
    /// What a call sees of others' load, relative to its share.
    pub load_weight: f64,
    /// µs that every hop waits for its GPU's turn.
    pub wait: f64,
    /// Share of the network's bandwidth that all-to-all traffic keeps.
    pub alltoall_share: f64,
    /// How the network carries rings and trees, where it is no fat tree.
    pub ways: Option<Ways>,
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
    /// What only transfers between pairs of ranks have.
    pub transfer: Transfer,
    /// What only switches that aggregate have.
    pub aggregation: Aggregation,
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
            nics: 1.0,
            nic_share: 1.0,
            load_weight: 1.0,
            wait: 0.0,
            alltoall_share: 1.0,
            ways: None,
            intra: constants.hop.intra(cluster.intra.link).slowed(calibration.intra_latency),
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
            transfer: constants.transfer,
            aggregation: constants.aggregation,
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
    pub(super) fn start_with(&mut self, factor: f64, shown: f64) {
        self.call.launch = self.call.launch.map(|us| us * factor * shown);
        self.nvls.start *= factor;
        self.rooted.broadcast = self.rooted.broadcast.map(|us| us * factor);
        self.rooted.reduce = self.rooted.reduce.map(|us| us * factor);
    }

    fn connect(&mut self, cluster: &Cluster, inter: &Inter, constants: &Constants) {
        let calibration = cluster.calibration;
        self.inter = *constants.hop.inter(inter.link);
        if let Some(hop) = inter.hop {
            // The file states whole hops; what the CPU adds per channel is part of them, and no hop is without it.
            for (alpha, (whole, serial)) in
                self.inter.alpha.iter_mut().zip(hop.into_iter().zip(self.inter.serial))
            {
                *alpha = (whole - serial).max(0.0);
            }
        }
        // Sweeps over sockets of one host have rounds of PAT that are quicker than hops of a ring. Nobody has
        // measured that for sockets between hosts, so there a round is a hop.
        if inter.link == InterLink::Tcp {
            self.pat.round = self.pat.round.max(1.0);
        }
        self.inter = self.inter.slowed(calibration.inter_latency);
        for alpha in &mut self.inter.alpha {
            *alpha += inter.propagation;
        }
        let reached = PER_MICRO * calibration.inter_bandwidth * constants.bandwidth.inter;
        self.nics = f64::from(inter.nics.max(1));
        self.nic_share = self.driven(cluster.gpus_per_node);
        self.lanes = self.nics.min(self.local);
        let bandwidth = if inter.shaped { &mut self.shaped_bandwidth } else { &mut self.inter_bandwidth };
        *bandwidth = inter.bandwidth * reached * self.nic_share;
        self.host_bandwidth = self.inter.ceiling * self.local * reached;
        for level in cluster.tiers.iter().filter(|level| f64::from(level.nodes) <= self.nodes) {
            let group = f64::from(level.nodes.max(2) - 1);
            let groups = (self.nodes / group).ceil();
            self.ring_detour += level.hop_latency * groups / self.ranks;
            self.tree_detour += level.hop_latency * f64::from(ceil_log2(groups as u32)).min(self.depth);
            self.inter_bandwidth *= level.bandwidth_share;
            self.shaped_bandwidth *= level.bandwidth_share;
        }
        if let Some(wiring) = constants.wiring.of(inter.class) {
            self.wire(wiring);
        }
    }

    /// Share of the NICs that this many ranks of a node drive: the whole node all of them, a part of it
    /// those beside its GPUs, of which each has at least one.
    fn driven(&self, gpus_per_node: u32) -> f64 {
        let gpus = f64::from(gpus_per_node.max(1));
        if self.local >= gpus {
            return 1.0;
        }
        (self.local * (self.nics / gpus).max(1.0) / self.nics).min(1.0)
    }

    /// The same fabric in these conditions.
    pub fn under(&self, conditions: &Conditions) -> Self {
        let mut fabric = *self;
        // A low class sees more than its share, but never a network without anything left.
        let load = (conditions.load * self.load_weight).min(conditions.load.max(MOST_LOAD));
        let left = (1.0 - load) * conditions.nics * conditions.bandwidth * conditions.speed;
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

impl Hop {
    /// A hop whose latencies take `factor` times as long.
    pub(super) fn slowed(&self, factor: f64) -> Hop {
        Hop {
            alpha: self.alpha.map(|us| us * factor),
            serial: self.serial.map(|us| us * factor),
            rendezvous: self.rendezvous * factor,
            ..*self
        }
    }
}

/// The smallest whole power of two that reaches `x`.
pub fn ceil_log2(x: u32) -> u32 {
    x.max(1).next_power_of_two().trailing_zeros()
}
