//! What the formulas of NCCL's model read of a communicator.

use dynamiccl_spec::{Algorithm, Collective};

use super::comm::CommSpec;
use super::constants::Limits;
use super::graph::{Graph, PathType};
use super::host::{CpuArch, CpuVendor};

/// The graph of an algorithm for which the search found none.
const NO_GRAPH: Graph = Graph {
    channels: 0,
    bw_intra: 0.0,
    bw_inter: 0.0,
    type_intra: PathType::Loc,
    type_inter: PathType::Loc,
    pattern: 0,
    same_channels: false,
    latency_inter: 0.0,
};

/// A communicator as the model sees it, before any number is derived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub nodes: u32,
    pub ranks_per_node: u32,
    pub ranks: u32,
    pub sm: u32,
    pub arch: CpuArch,
    /// In-network reduction is on and the search found a graph for it.
    pub collnet: bool,
    /// The GPUs can reduce in their NVLink switch.
    pub nvls: bool,
    pub nvls_heads: u32,
    pub collnet_heads: u32,
    /// µs that the proxy needs to post one step.
    pub net_overhead: f32,
    pub limits: Limits,
    ring: Graph,
    tree: Graph,
    nvls_graph: Graph,
    collnet_chain: Graph,
    collnet_direct: Graph,
}

impl Shape {
    pub fn new(spec: &CommSpec) -> Self {
        let graphs = &spec.graphs;
        let (mut ring, mut tree) = (graphs.ring, graphs.tree);
        ring.channels = ring.channels.min(tree.channels);
        tree.channels = ring.channels;
        let nvls_graph = graphs.nvls.unwrap_or(NO_GRAPH);
        let collnet_chain = graphs.collnet_chain.unwrap_or(NO_GRAPH);
        let collnet_direct = graphs.collnet_direct.unwrap_or(NO_GRAPH);
        let (nodes, ranks_per_node) = (spec.nodes.max(1), spec.ranks_per_node.max(1));
        let nvls = spec.sm >= 90 && spec.nvswitch && ranks_per_node > 1 && nvls_graph.channels > 0;
        Shape {
            nodes,
            ranks_per_node,
            ranks: nodes.saturating_mul(ranks_per_node),
            sm: spec.sm,
            arch: spec.arch,
            collnet: spec.collnet && nodes > 1 && collnet_chain.channels > 0,
            nvls,
            nvls_heads: if nvls { nvls_graph.channels } else { 0 },
            collnet_heads: collnet_direct.channels,
            net_overhead: net_overhead(spec),
            limits: Limits::new(spec),
            ring,
            tree,
            nvls_graph,
            collnet_chain,
            collnet_direct,
        }
    }

    /// The graph that an algorithm runs on; NVLS tree shares with NVLS, PAT with the tree.
    pub fn graph(&self, algorithm: Algorithm) -> &Graph {
        match algorithm {
            Algorithm::Tree | Algorithm::Pat => &self.tree,
            Algorithm::Ring => &self.ring,
            Algorithm::CollnetDirect => &self.collnet_direct,
            Algorithm::CollnetChain => &self.collnet_chain,
            Algorithm::Nvls | Algorithm::NvlsTree => &self.nvls_graph,
        }
    }

    /// Ranks per node as NCCL's float.
    pub fn ppn(&self) -> f32 {
        self.ranks as f32 / self.nodes as f32
    }

    /// Steps of a ring.
    pub fn ring_steps(&self, collective: Collective) -> u64 {
        let ranks = u64::from(self.ranks);
        match collective {
            Collective::AllReduce => 2 * ranks.saturating_sub(1),
            Collective::AllGather | Collective::ReduceScatter => ranks.saturating_sub(1),
            _ => ranks,
        }
    }

    /// Depth of a tree over the nodes.
    pub fn node_depth(&self) -> u32 {
        self.nodes.ilog2()
    }
}

fn net_overhead(spec: &CommSpec) -> f32 {
    match spec.overrides.net_overhead_ns {
        Some(ns) => (f64::from(ns) * 0.001) as f32,
        None if spec.arch == CpuArch::X86 && spec.cpu == CpuVendor::Amd => 2.0,
        None => 1.0,
    }
}
