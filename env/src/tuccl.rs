//! True times of the settings that TuCCL searches: MSCCL's ring with its own protocol, channels, threads
//! and buffer, none of which NCCL's own rules narrow.
//!
//! A buffer holds eight steps, so a step's chunk is an eighth of it, but never less than a grain. A block
//! with fewer than a warp per channel stalls: TuCCL says so of `N_t < 32 · N_c`, and here its throughput
//! falls by their ratio. What a launch costs does not change with it.

use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

use crate::model::Call;
use crate::sim::Simulator;

/// Steps that a buffer holds.
const STEPS: u64 = 8;
/// Threads of a warp.
const WARP: u32 = 32;

/// One setting of MSCCL's ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSetting {
    /// The protocol.
    pub protocol: Protocol,
    /// Channels.
    pub channels: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of a channel's buffer.
    pub buffer: u64,
}

impl RingSetting {
    /// Payload bytes of a step.
    pub fn chunk_bytes(&self) -> u64 {
        let grain = self.protocol.grain();
        (self.buffer / STEPS / grain * grain).max(grain)
    }

    /// How many times longer the carried part takes because warps stall; 1 where they do not.
    pub fn stall(&self) -> f64 {
        let (needed, threads) = (WARP * self.channels, self.threads.max(1));
        f64::from(needed.max(threads)) / f64::from(threads)
    }
}

impl Simulator {
    /// The true time of a collective with such a setting, in µs.
    pub fn ring_micros(&self, collective: Collective, bytes: u64, setting: &RingSetting) -> f64 {
        let call = Call {
            collective,
            bytes,
            pair: Pair::new(Algorithm::Ring, setting.protocol),
            channels: setting.channels,
            threads: setting.threads,
            chunk_bytes: setting.chunk_bytes(),
            pipelined: 1,
        };
        let micros = self.micros_of(self.fabric(), &call);
        let launch = self.fabric().call.launch[setting.protocol.id()].min(micros);
        launch + (micros - launch) * setting.stall()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, CommOptions};
    use crate::model::ConstantsFile;
    use crate::world::World;

    fn simulator(cluster: &str, nodes: u32, world: Option<u64>) -> Simulator {
        let constants = ConstantsFile::load("full").unwrap();
        let world = world.map_or_else(|| World::nominal(&constants), |seed| World::draw(&constants, seed));
        Simulator::new(&Cluster::load(cluster).unwrap(), nodes, &CommOptions::default(), &world).unwrap()
    }

    fn all() -> impl Iterator<Item = RingSetting> {
        Protocol::ALL.iter().flat_map(|&protocol| {
            [2, 4, 8, 16].into_iter().flat_map(move |channels| {
                (1..=20).flat_map(move |warps| {
                    (1..=15).map(move |n| RingSetting {
                        protocol,
                        channels,
                        threads: 32 * warps,
                        buffer: 128 << n,
                    })
                })
            })
        })
    }

    #[test]
    fn every_setting_has_a_time_that_grows_with_bytes_and_falls_with_threads() {
        for (cluster, nodes) in [("dgx_a100", 2), ("dgx1_v100", 1)] {
            let simulator = simulator(cluster, nodes, None);
            for setting in all() {
                let micros = |bytes| simulator.ring_micros(Collective::AllReduce, bytes, &setting);
                let [small, large] = [64 << 10, 64 << 20].map(micros);
                assert!(small.is_finite() && small > 0.0 && large >= small, "{setting:?}: {small} {large}");
                let more = RingSetting { threads: setting.threads + 32, ..setting };
                let faster = simulator.ring_micros(Collective::AllReduce, 64 << 20, &more);
                assert!(faster <= large * (1.0 + 1e-12), "{setting:?}: {large}, with a warp more {faster}");
            }
        }
    }

    #[test]
    fn a_chunk_is_an_eighth_of_the_buffer_in_whole_grains() {
        let chunk =
            |protocol, buffer| RingSetting { protocol, channels: 2, threads: 64, buffer }.chunk_bytes();
        assert_eq!(chunk(Protocol::Simple, 4 << 20), 512 << 10);
        assert_eq!(chunk(Protocol::Simple, 256), 512);
        assert_eq!(chunk(Protocol::LL128, 32 << 10), 2 * 1920);
        assert_eq!(chunk(Protocol::LL, 256), 32);
    }

    #[test]
    fn too_few_threads_stall_what_is_carried_and_not_the_launch() {
        let simulator = simulator("dgx_a100", 1, None);
        let enough = RingSetting { protocol: Protocol::Simple, channels: 16, threads: 512, buffer: 4 << 20 };
        assert_eq!(enough.stall(), 1.0);
        let few = RingSetting { threads: 128, ..enough };
        assert_eq!(few.stall(), 4.0);
        // Without a stall, 128 threads of 4 channels are as fast as the model's threads are.
        let micros = simulator.ring_micros(Collective::AllGather, 1 << 20, &few);
        let pair = Pair::new(Algorithm::Ring, Protocol::Simple);
        let call = Call {
            collective: Collective::AllGather,
            bytes: 1 << 20,
            pair,
            channels: 16,
            threads: 128,
            chunk_bytes: few.chunk_bytes(),
            pipelined: 1,
        };
        let free = simulator.micros_of(simulator.fabric(), &call);
        let launch = simulator.fabric().call.launch[Protocol::Simple.id()];
        assert!((micros - (4.0 * free - 3.0 * launch)).abs() < 1e-9 * micros);
    }
}
