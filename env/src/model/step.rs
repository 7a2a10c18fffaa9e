//! What one step of one channel costs: the terms that every algorithm is made of.

use dynamiccl_spec::{Algorithm, Protocol};

use crate::model::Call;
use crate::model::constants::Hop;
use crate::model::fabric::{Fabric, WIRE};

const LL: usize = Protocol::LL.id();
/// Buffer steps that every channel keeps in flight, in each direction and for each peer (NCCL's 8).
const STEPS: f64 = 8.0;
/// Buffers per channel that compete for the cache: receive, send and the user's own.
const BUFFERS: f64 = 3.0;
/// Bytes after which copying and sending run side by side: a quarter of NCCL's Simple step.
const SLICE: f64 = 131_072.0;
/// Flows into one NIC that its queues take without delay.
const QUEUES: f64 = 8.0;

/// One channel of a call: its share and what bounds its speed.
#[derive(Debug, Clone, Copy)]
pub struct Lane {
    /// Index of the protocol.
    pub protocol: usize,
    /// Channels.
    pub channels: f64,
    /// Bytes of this channel.
    pub share: f64,
    /// Payload bytes per step.
    pub chunk: f64,
    /// Bytes per µs that the channel's threads move.
    pub rate: f64,
    /// Share of its full rate that its threads reach; above 1 with more than usual.
    pub threads: f64,
    /// Wire bytes per payload byte.
    pub wire: f64,
    /// µs per hop because the slowest of several channels counts.
    pub spread: f64,
    /// Channels that one proxy thread serves in turn.
    pub queue: f64,
}

impl Lane {
    /// The channel of this call.
    pub fn new(fabric: &Fabric, call: &Call) -> Self {
        let protocol = call.pair.protocol.id();
        let channels = f64::from(call.channels.max(1));
        let constants = &fabric.call;
        let doublings = f64::from(31 - call.channels.max(1).leading_zeros());
        let chunk = call.chunk_bytes.max(1) as f64;
        // The switch reduces straight out of the users' memory: NVLS has no such buffers.
        let buffered = !matches!(call.pair.algorithm, Algorithm::Nvls | Algorithm::NvlsTree);
        let spills = buffered && channels * BUFFERS * STEPS * chunk > fabric.arch.cache * 1e6;
        let spilled = if spills { constants.spilled } else { 1.0 };
        let threads = threads(call.threads, constants.half_threads[protocol]);
        Lane {
            protocol,
            channels,
            share: call.bytes as f64 / channels,
            chunk,
            rate: fabric.arch.channel_rate[protocol] * spilled * threads,
            threads,
            wire: WIRE[protocol],
            spread: constants.spread[protocol] * doublings,
            queue: (channels / fabric.lanes).max(1.0),
        }
    }

    /// µs that all channels together need on the network for `bytes` each. Few flows share paths worse.
    pub fn on_network(&self, fabric: &Fabric, bytes: f64) -> f64 {
        let collisions = 1.0 + fabric.inter.collision / self.channels.sqrt();
        let line = self.on_link(bytes, fabric.inter_bandwidth) * collisions;
        if self.protocol == LL { line.max(self.channels * bytes / fabric.ll_bandwidth) } else { line }
    }

    /// µs that all channels together need on a link of this bandwidth for `bytes` each.
    pub fn on_link(&self, bytes: f64, bandwidth: f64) -> f64 {
        self.channels * bytes * self.wire / bandwidth
    }

    /// µs that the CPUs need to send and receive `bytes` of each channel.
    pub fn on_host(&self, fabric: &Fabric, bytes: f64) -> f64 {
        2.0 * self.on_link(bytes, fabric.host_bandwidth)
    }

    /// Latency of a hop for a message of `bytes` per channel, with `queue` messages for one CPU thread.
    pub fn hop(&self, fabric: &Fabric, hop: &Hop, bytes: f64, queue: f64) -> f64 {
        let constants = &fabric.call;
        let data = constants.data[self.protocol] * bytes / (bytes + constants.data_scale[self.protocol]);
        let rendezvous = if bytes * self.wire > hop.eager { hop.rendezvous } else { 0.0 };
        let crowd = hop.incast * (self.channels / fabric.lanes - QUEUES).max(0.0);
        hop.alpha[self.protocol]
            + hop.serial[self.protocol] * queue
            + self.spread
            + data
            + rendezvous
            + crowd
            + fabric.wait
    }

    /// Copying and sending `bytes`, which overlap but for a share of the quicker one's first slice.
    pub fn blended(&self, fabric: &Fabric, bytes: f64, copy: f64, wire: f64) -> f64 {
        let first_slice = (SLICE / bytes.max(1.0)).min(1.0);
        copy.max(wire) + fabric.call.blend[self.protocol].min(1.0) * copy.min(wire) * first_slice
    }

    /// A transfer and a latency that partly hide each other: never less than either part allows.
    pub fn overlapped(&self, fabric: &Fabric, busy: f64, latency: f64) -> f64 {
        let exposed = fabric.call.exposed[self.protocol].min(1.0);
        busy + latency - ((1.0 - exposed) * latency).min(busy)
    }
}

/// Share of its full rate that a channel reaches with this many threads.
fn threads(threads: u32, half: f64) -> f64 {
    const FULL: f64 = 512.0;
    let threads = f64::from(threads.max(1));
    threads / (threads + half) * (FULL + half) / FULL
}
