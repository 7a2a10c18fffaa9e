//! Latency of every pair, as `ncclTopoTuneModel` computes it.

use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

use super::constants::{BASE_LATENCY, NETWORK_LATENCY, NVLINK_LATENCY, PCI_LATENCY};
use super::graph::PathType;
use super::host::CpuArch;
use super::shape::Shape;

impl Shape {
    /// µs that a pair needs besides moving bytes.
    pub fn latency(&self, collective: Collective, pair: Pair) -> f32 {
        let base = BASE_LATENCY[pair.algorithm.id()][pair.protocol.id()];
        let hop = self.inner_hop(pair.algorithm, pair.algorithm, pair.protocol);
        let net = self.network_hop(pair);
        let inner = self.ranks / self.nodes - 1;
        let depth = self.node_depth();
        match pair.algorithm {
            Algorithm::Ring if collective.is_rooted() => base + self.rooted_ring(collective, pair.protocol),
            Algorithm::Ring => base + self.ring(collective, pair.protocol, hop, net),
            Algorithm::Tree => base + 2.0 * (inner as f32 * hop + depth as f32 * net),
            Algorithm::CollnetDirect => {
                let scatter = f64::from(inner.min(1) as f32 * hop) + f64::from(inner) * 0.4;
                (f64::from(base) + (2.0 * scatter + f64::from(net))) as f32
            }
            Algorithm::CollnetChain => base + ((2 * u64::from(inner)) as f32 * hop + net),
            Algorithm::Nvls if self.nodes == 1 => hop,
            Algorithm::Nvls => hop + net,
            Algorithm::NvlsTree => base + (hop + (2 * depth) as f32 * net),
            Algorithm::Pat => {
                let tree = f64::from(depth) * (f64::from(net) / 3.5);
                (f64::from(base) + (tree + f64::from(self.ranks) * 2.8)) as f32
            }
        }
    }

    /// One hop inside a node over the links of `graph`, at the price that `algorithm` pays.
    fn inner_hop(&self, graph: Algorithm, algorithm: Algorithm, protocol: Protocol) -> f32 {
        if self.graph(graph).type_intra == PathType::Nvl {
            return NVLINK_LATENCY[algorithm.id()][protocol.id()];
        }
        // On POWER, NCCL gives the tree the ring's price.
        let power_tree =
            self.arch == CpuArch::Power && (algorithm, protocol) == (Algorithm::Tree, Protocol::Simple);
        let algorithm = if power_tree { Algorithm::Ring } else { algorithm };
        PCI_LATENCY[algorithm.id()][protocol.id()]
    }

    /// One hop between nodes.
    fn network_hop(&self, pair: Pair) -> f32 {
        // With one rank per node nothing hides the network: every algorithm pays the tree's price.
        let algorithm = if self.ppn() == 1.0 { Algorithm::Tree } else { pair.algorithm };
        let declared = self.graph(pair.algorithm).latency_inter;
        let hop = NETWORK_LATENCY[algorithm.id()][pair.protocol.id()] + declared;
        match pair.protocol {
            // Simple also flushes.
            Protocol::Simple => hop + declared,
            _ => hop,
        }
    }

    fn rooted_ring(&self, collective: Collective, protocol: Protocol) -> f32 {
        let hop = |algorithm: Algorithm| match self.nodes {
            1 => self.inner_hop(Algorithm::Ring, algorithm, protocol),
            _ => NETWORK_LATENCY[algorithm.id()][protocol.id()],
        };
        if self.graph(Algorithm::Ring).same_channels {
            return hop(Algorithm::Ring);
        }
        let dearer = if protocol == Protocol::Simple { Algorithm::Tree } else { Algorithm::Ring };
        self.ring_steps(collective) as f32 * hop(dearer)
    }

    fn ring(&self, collective: Collective, protocol: Protocol, hop: f32, net: f32) -> f32 {
        let overhead = match protocol {
            _ if self.nodes == 1 => 0.0,
            Protocol::Simple => self.net_overhead * 3.0,
            _ => self.net_overhead,
        };
        let crossings = u64::from(self.nodes - 1) * if collective == Collective::AllReduce { 2 } else { 1 };
        let inside = self.ring_steps(collective).saturating_sub(crossings);
        inside as f32 * hop.max(overhead) + crossings as f32 * net
    }
}
