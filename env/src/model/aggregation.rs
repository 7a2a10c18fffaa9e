//! Switches that aggregate what passes through them, as SwitchML and ATP do.
//!
//! Unlike SHARP this is no algorithm of NCCL's: it takes its place. Nodes send every byte once and get the
//! sum once, in packets that wait for a slot in the switch's pool.

use dynamiccl_spec::Protocol;

use crate::model::fabric::Fabric;

const SIMPLE: usize = Protocol::Simple.id();

impl Fabric {
    /// The µs of an allreduce that the switches aggregate; nothing on one node.
    pub fn in_network(&self, bytes: u64) -> Option<f64> {
        if !self.crosses() {
            return None;
        }
        let bytes = bytes as f64;
        let inside = bytes * (self.local - 1.0) / self.local / self.intra_bandwidth;
        let near = if self.local > 1.0 { self.intra.alpha[SIMPLE] + self.wait } else { 0.0 };
        let round_trip = 2.0 * self.inter.alpha[SIMPLE] + self.aggregation.start;
        let pool = self.aggregation.pool * 1e6 / round_trip;
        let line = self.inter_bandwidth.min(self.shaped_bandwidth).min(self.host_bandwidth / 2.0);
        // Inside the node the GPUs reduce and then gather, each over its own link.
        let latency = self.call.launch[SIMPLE] + 2.0 * (near + inside) + round_trip + 2.0 * self.wait;
        Some(latency + bytes / line.min(pool))
    }
}
