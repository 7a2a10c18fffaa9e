//! What a collective really takes: a closed form per algorithm.
//!
//! NCCL's own formula has no chunk pipeline, no cost of carrying data, no CPU that serves channels in
//! turn and no eager threshold; this model has, and is held against measurements. Times never fall
//! when bytes grow at fixed channels and chunk, nor when a link gets slower: every formula is a sum of
//! terms that grow in both.

mod aggregation;
mod conditions;
pub mod constants;
pub mod fabric;
mod network;
mod nvls;
mod ring;
mod rooted;
mod step;
mod surroundings;
mod transfer;
mod tree;
mod wiring;

use dynamiccl_spec::{Algorithm, ChunkChoice, Collective, Pair};

use crate::nccl::{Communicator, Launch, Realised};
pub use conditions::Conditions;
pub use constants::{Constants, ConstantsError, ConstantsFile};
pub use fabric::Fabric;
pub use surroundings::{Surroundings, compute_stretch};

/// One call with every knob as NCCL realises it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// The collective.
    pub collective: Collective,
    /// Its size, as NCCL counts it.
    pub bytes: u64,
    /// Algorithm and protocol.
    pub pair: Pair,
    /// Launched channels.
    pub channels: u32,
    /// Threads per block.
    pub threads: u32,
    /// Payload bytes per step and channel.
    pub chunk_bytes: u64,
    /// Calls that share this one's launch; 1 where it is launched by itself.
    pub pipelined: u32,
}

impl Call {
    /// The call that a realised choice of knobs is.
    pub fn of(collective: Collective, bytes: u64, realised: &Realised) -> Self {
        let Realised { pair, channels, threads, chunk_bytes, .. } = *realised;
        Call { collective, bytes, pair, channels, threads, chunk_bytes, pipelined: 1 }
    }

    /// The call that NCCL makes of a forced pair, with as many channels and such chunks as asked for or its own.
    pub fn forced(
        communicator: &Communicator,
        collective: Collective,
        bytes: u64,
        pair: Pair,
        channels: Option<u32>,
        chunk: ChunkChoice,
    ) -> Self {
        let (own, threads) = communicator.channels_threads(pair, bytes);
        let limit = communicator.channel_limit(pair).max(1);
        let most = channels.unwrap_or(own).clamp(1, limit);
        let Launch { channels, chunk_bytes, .. } = communicator.launch(collective, pair, bytes, most, chunk);
        Call { collective, bytes, pair, channels, threads, chunk_bytes, pipelined: 1 }
    }
}

impl Fabric {
    /// The µs of a call; always finite and positive.
    pub fn time(&self, call: &Call) -> f64 {
        match &self.ways {
            None => self.time_on_ways(call),
            Some(ways) => self.along(ways, call.pair.algorithm).time_on_ways(call),
        }
    }

    fn time_on_ways(&self, call: &Call) -> f64 {
        let lane = step::Lane::new(self, call);
        let micros = match (call.pair.algorithm, call.collective.is_rooted()) {
            (Algorithm::Ring, true) => rooted::time(self, call, &lane),
            (Algorithm::Ring, false) => ring::time(self, call, &lane),
            (Algorithm::Tree, _) => tree::time(self, &lane),
            (Algorithm::Nvls | Algorithm::NvlsTree, _) => nvls::time(self, call, &lane),
            (Algorithm::Pat, _) => network::pat(self, call, &lane),
            (Algorithm::CollnetDirect | Algorithm::CollnetChain, _) => network::collnet(self, call, &lane),
        };
        let micros = if call.pipelined > 1 { micros - self.saved(call) } else { micros };
        if self.shaped_bandwidth.is_infinite() {
            return micros;
        }
        micros.max(self.sent(call, &lane) / self.shaped_bandwidth)
    }

    /// What a call need not pay because others share its launch.
    fn saved(&self, call: &Call) -> f64 {
        let protocol = call.pair.protocol.id();
        let start = match (call.pair.algorithm, call.collective) {
            (Algorithm::Nvls | Algorithm::NvlsTree, _) => self.nvls.start,
            (Algorithm::Ring, Collective::Broadcast | Collective::Reduce) => {
                rooted::start(self, call.collective)[protocol]
            }
            _ => self.call.launch[protocol],
        };
        start * (1.0 - 1.0 / f64::from(call.pipelined))
    }

    /// Wire bytes that the busiest node sends.
    fn sent(&self, call: &Call, lane: &step::Lane) -> f64 {
        let others = (self.ranks - 1.0) / self.ranks;
        let passes = match (call.pair.algorithm, call.collective) {
            (Algorithm::Tree | Algorithm::NvlsTree, _) => tree::sends(self.nodes, lane.channels),
            (Algorithm::Ring, Collective::AllReduce) => 2.0 * others,
            (_, Collective::Broadcast) => rooted::waits(self, lane, lane.share),
            (_, Collective::AllGather | Collective::ReduceScatter) => others,
            _ => 1.0,
        };
        passes * call.bytes as f64 * lane.wire
    }
}
