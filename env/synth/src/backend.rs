//! What an executor of schedules is set to: protocol, channels, threads, buffer; and what one connection
//! moves with them.

use dynamiccl_spec::Protocol;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Threads of a warp.
const WARP: f64 = 32.0;
/// Threads at which a block reaches half of what more could add.
const HALF: f64 = 96.0;
/// Threads that a block's rate is stated for.
const STATED: f64 = 512.0;
/// µs that a buffer between nodes is under way and back.
const ROUND_TRIP: f64 = 30.0;
/// Slots of a buffer.
const SLOTS: f64 = 8.0;

/// One setting of the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backend {
    /// The protocol.
    pub protocol: Protocol,
    /// Channels: parallel instances of the schedule.
    pub channels: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of a connection's buffer in one channel.
    pub buffer: u64,
}

impl Default for Backend {
    /// MSCCL's: Simple, one channel, 512 threads, 4 MiB.
    fn default() -> Self {
        Backend { protocol: Protocol::Simple, channels: 1, threads: 512, buffer: 4 << 20 }
    }
}

/// What a protocol does to a thread block's rate, to the bytes on the wire and to latencies.
struct Cost {
    rate: f64,
    wire: f64,
    latency: f64,
}

const fn cost(protocol: Protocol) -> Cost {
    match protocol {
        Protocol::Simple => Cost { rate: 1.0, wire: 1.0, latency: 1.0 },
        Protocol::LL => Cost { rate: 0.5, wire: 2.0, latency: 0.25 },
        Protocol::LL128 => Cost { rate: 0.92, wire: 128.0 / 120.0, latency: 0.4 },
    }
}

impl Backend {
    /// Bytes that a step moves at most. Simple fills half a buffer at once; LL spends half on flags.
    pub fn tile(&self) -> f64 {
        let slot = self.buffer as f64 / SLOTS;
        match self.protocol {
            Protocol::Simple => 4.0 * slot,
            Protocol::LL => slot / 2.0,
            Protocol::LL128 => slot,
        }
    }

    /// Bytes on the wire for each of payload.
    pub fn wire(&self) -> f64 {
        cost(self.protocol).wire
    }

    /// µs before a transfer begins.
    pub fn latency(&self, machine: &Machine, remote: bool) -> f64 {
        let rates = &machine.rates;
        let hop = if remote { rates.remote_hop } else { rates.local_hop };
        (hop + rates.step) * cost(self.protocol).latency
    }

    /// How far the threads of a block carry its rate. With fewer than a warp per channel it stalls (TuCCL).
    fn thread_share(&self) -> f64 {
        let threads = f64::from(self.threads);
        let reach = threads / (threads + HALF) * ((STATED + HALF) / STATED);
        reach * (threads / (WARP * f64::from(self.channels))).min(1.0)
    }

    /// GB/s of one connection alone, where the busiest GPU has so many thread blocks in one channel.
    pub fn rate(&self, machine: &Machine, remote: bool, blocks: usize) -> f64 {
        let (rates, channels) = (&machine.rates, f64::from(self.channels));
        let crowd = (blocks as f64 * channels / f64::from(rates.sms)).max(1.0);
        let cost = cost(self.protocol);
        if !remote {
            return channels * rates.block * cost.rate * self.thread_share() / crowd;
        }
        let sent =
            channels * rates.network_channel * cost.rate * (2.0 * self.thread_share()).min(1.0) / crowd;
        sent.min(channels * self.buffer as f64 / ROUND_TRIP / 1e3)
    }
}
