//! Algorithm bandwidth of every pair, as `ncclTopoTuneModel` computes it.
//!
//! Every rounding to float stands where NCCL's stands: the mix of float and double decides ties.

use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

use super::constants::PATTERN_TREE;
use super::graph::Graph;
use super::shape::Shape;

impl Shape {
    /// GB/s of a pair; 0 where it cannot run.
    pub fn bandwidth(&self, collective: Collective, pair: Pair) -> f32 {
        let graph = self.graph(pair.algorithm);
        let bus = graph.channels as f32 * self.channel_bandwidth(collective, pair.algorithm, graph);
        let bus = match pair.algorithm {
            Algorithm::Ring => self.ring_bus(bus, graph, pair.protocol),
            Algorithm::Tree => self.tree_bus(bus, graph, pair.protocol),
            Algorithm::Pat => times(bus, 0.75),
            Algorithm::CollnetDirect => self.collnet_direct_bus(bus, graph, collective),
            Algorithm::CollnetChain | Algorithm::Nvls | Algorithm::NvlsTree => bus,
        };
        let algorithm_bandwidth = bus * self.bus_to_algorithm(collective, pair.algorithm);
        if algorithm_bandwidth.is_finite() { algorithm_bandwidth.max(0.0) } else { 0.0 }
    }

    fn channel_bandwidth(&self, collective: Collective, algorithm: Algorithm, graph: &Graph) -> f32 {
        match algorithm {
            Algorithm::Nvls | Algorithm::NvlsTree => self.nvls_channel(collective, algorithm, graph),
            Algorithm::CollnetDirect | Algorithm::CollnetChain => graph.bw_intra,
            _ if self.nodes <= 2 => graph.bw_intra,
            _ => graph.bw_inter,
        }
    }

    fn nvls_channel(&self, collective: Collective, algorithm: Algorithm, graph: &Graph) -> f32 {
        if graph.channels < 2 {
            return 0.0;
        }
        let heads = graph.channels as f32;
        let intra = graph.bw_intra * self.limits.nvls_efficiency * (graph.channels - 1) as f32 / heads;
        let intra = match collective {
            // Allreduce pipelines its two halves.
            Collective::AllReduce => intra * 2.0,
            _ => intra * ((self.ppn() - 1.0) / self.ppn()),
        };
        match algorithm {
            Algorithm::NvlsTree => {
                let sides = if self.nodes <= 2 { 2.0 } else { 1.0 };
                intra.min(graph.bw_inter * sides).min(self.limits.nvls_tree)
            }
            _ => intra.min(graph.bw_inter),
        }
    }

    fn ring_bus(&self, bus: f32, graph: &Graph, protocol: Protocol) -> f32 {
        let bus = f64::from(bus);
        let capped = match protocol {
            Protocol::LL => self.limits.ll.min(bus * 0.5),
            Protocol::LL128 => (bus * 0.92).min(f64::from(graph.channels) * self.limits.ring_ll128),
            Protocol::Simple => bus,
        };
        capped as f32
    }

    fn tree_bus(&self, bus: f32, graph: &Graph, protocol: Protocol) -> f32 {
        let channels = f64::from(graph.channels);
        let bus = (f64::from(bus) * 0.92).min(channels * self.limits.tree) as f32;
        let capped = match protocol {
            Protocol::LL => (f64::from(bus) / 3.8).min(self.limits.ll) as f32,
            Protocol::LL128 => {
                let efficiency = if self.nodes == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                (f64::from(bus) * efficiency).min(channels * self.limits.tree_ll128) as f32
            }
            Protocol::Simple => bus,
        };
        if graph.pattern == PATTERN_TREE { times(capped, 0.85) } else { capped }
    }

    fn collnet_direct_bus(&self, bus: f32, graph: &Graph, collective: Collective) -> f32 {
        if collective.is_sharded() {
            return self.ppn() * graph.bw_intra.min(graph.bw_inter * 0.9);
        }
        if graph.channels == 0 {
            return 0.0;
        }
        // GPUs that share a NIC slow each other down, by half of what plain sharing would cost.
        let factor = (f64::from(self.ppn()) / f64::from(graph.channels)) as f32;
        let bus = bus / (factor - (factor - 1.0) / 2.0);
        if self.sm >= 90 { times(bus, 0.85) } else { bus }
    }

    fn bus_to_algorithm(&self, collective: Collective, algorithm: Algorithm) -> f32 {
        match algorithm {
            Algorithm::Ring => {}
            _ if collective.is_sharded() => return 1.0,
            Algorithm::Nvls | Algorithm::NvlsTree => {}
            _ => return 0.5,
        }
        (f64::from(self.ranks) / self.ring_steps(collective) as f64) as f32
    }
}

/// A float scaled by a double constant and rounded once, as `x *= 0.85` does in C.
fn times(x: f32, factor: f64) -> f32 {
    (f64::from(x) * factor) as f32
}
