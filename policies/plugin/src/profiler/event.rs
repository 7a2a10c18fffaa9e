//! What NCCL says of an event, whatever version of its interface it says it through.

use dynamiccl_spec::{Algorithm, Collective, Protocol};

/// A new event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Operations that are launched together.
    Group,
    /// A collective.
    Collective(Started),
    /// The kernel of a collective begins on a channel.
    Kernel {
        /// The handle of the collective.
        parent: u64,
        /// The channel.
        channel: u8,
        /// The GPU's clock in ns, where this version of the interface has it.
        gpu_ns: Option<u64>,
    },
}

/// A collective that NCCL launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The communicator's id where the event has it; newer versions give it once, at init.
    pub comm: Option<u64>,
    /// The rank that launches it.
    pub rank: u32,
    /// NCCL's number of it among those of its kind in its communicator.
    pub seq: u64,
    /// Which.
    pub collective: Collective,
    /// Its bytes.
    pub bytes: Counted,
    /// The algorithm.
    pub algorithm: Option<Algorithm>,
    /// The protocol.
    pub protocol: Option<Protocol>,
    /// How many channels carry it.
    pub channels: Channels,
    /// Warps of a block.
    pub warps: u8,
}

/// Bytes, and what NCCL counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Count × element: one rank's part of an allgather or reducescatter.
    Part(u64),
    /// What a tuner is told: every rank's part.
    Whole(u64),
}

/// Channels of a collective, and what NCCL says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// As many as these; each has a kernel event (v4 and newer).
    Exactly(u8),
    /// At most as many; kernel events come from those that are used (v3).
    AtMost(u8),
    /// At most as many; there are no kernel events (v1 and v2).
    Untimed(u8),
}

impl Counted {
    /// From what v1 and v2 say: a collective's traffic counts an allreduce twice.
    pub fn from_traffic(collective: Collective, traffic: u64) -> Self {
        Counted::Whole(if collective == Collective::AllReduce { traffic / 2 } else { traffic })
    }
}
