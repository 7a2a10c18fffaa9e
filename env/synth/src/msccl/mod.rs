//! MSCCL's algorithm files: what a runtime that is not NCCL's catalogue can run.
//!
//! An algorithm is a program for every rank: thread blocks with a peer to send to and one to receive from,
//! and steps that wait for each other. [`export`] writes a schedule as such a file, [`read()`] reads any, and
//! [`run()`] proves one, whoever wrote it, by running it.

pub mod export;
mod limits;
mod read;
mod rules;
mod run;
mod value;
mod write;

use dynamiccl_spec::words::word_enum;

pub use limits::check as check_limits;
pub use read::read;
pub use rules::{Fault, Rule};
pub use run::{SLOTS, run};

word_enum! {
    /// A collective, in MSCCL's words.
    Coll, "collective of MSCCL", {
        /// Every rank's part to all.
        AllGather => "allgather",
        /// The reduction of all buffers at all ranks.
        AllReduce => "allreduce",
        /// Every rank gets its part of the reduction.
        ReduceScatter => "reducescatter",
        /// The root's buffer to all.
        Broadcast => "broadcast",
        /// The reduction of all buffers at the root.
        Reduce => "reduce",
        /// Every rank sends a part to every other.
        AllToAll => "alltoall",
    }
}

word_enum! {
    /// What a step does.
    Op, "step type", {
        /// Sends.
        Send => "s",
        /// Receives.
        Recv => "r",
        /// Receives, keeps and sends on.
        RecvCopySend => "rcs",
        /// Receives, adds and sends on.
        RecvReduceSend => "rrs",
        /// Receives, adds and keeps.
        RecvReduceCopy => "rrc",
        /// Receives, adds, keeps and sends on.
        RecvReduceCopySend => "rrcs",
        /// Copies within the rank.
        Copy => "cpy",
        /// Adds within the rank.
        Reduce => "re",
        /// Waits only.
        Nop => "nop",
    }
}

impl Op {
    /// Whether it receives.
    pub const fn receives(self) -> bool {
        matches!(
            self,
            Op::Recv | Op::RecvCopySend | Op::RecvReduceSend | Op::RecvReduceCopy | Op::RecvReduceCopySend
        )
    }

    /// Whether it sends.
    pub const fn sends(self) -> bool {
        matches!(self, Op::Send | Op::RecvCopySend | Op::RecvReduceSend | Op::RecvReduceCopySend)
    }
}

word_enum! {
    /// A buffer of a rank.
    Buffer, "buffer", {
        /// What the call gives.
        Input => "i",
        /// What the call gets.
        Output => "o",
        /// Scratch.
        Scratch => "s",
    }
}

/// How a call gives its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Input and output are one buffer.
    InPlace,
    /// Each is a buffer of its own.
    OutOfPlace,
}

/// One step of a thread block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub op: Op,
    /// Where it reads; a place of −1 is none.
    pub source: (Buffer, i32),
    /// Where it writes.
    pub target: (Buffer, i32),
    /// Chunks.
    pub count: u32,
    /// The thread block and its step that must be done before.
    pub after: Option<(u32, u32)>,
    /// Whether it says that others wait for it.
    pub awaited: bool,
}

/// One thread block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub id: u32,
    /// The rank that it sends to.
    pub send: Option<u32>,
    /// The rank that it receives from.
    pub recv: Option<u32>,
    /// Its channel.
    pub channel: u32,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// The program of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Chunks of its input.
    pub inputs: u32,
    /// Chunks of its output.
    pub outputs: u32,
    /// Chunks of its scratch buffer.
    pub scratch: u32,
    /// Its thread blocks.
    pub blocks: Vec<Block>,
}

/// A whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithm {
    /// Its name.
    pub name: String,
    /// The protocol, in MSCCL's words.
    pub protocol: String,
    /// Channels.
    pub channels: u32,
    /// Chunks of the larger buffer.
    pub chunks: u32,
    /// The collective.
    pub coll: Coll,
    /// Whether it runs in place.
    pub in_place: bool,
    /// Whether it runs out of place.
    pub out_of_place: bool,
    /// Sizes that it is meant for.
    pub sizes: (u64, u64),
    /// The programs, by rank.
    pub programs: Vec<Program>,
}

impl Algorithm {
    /// How it says that it runs.
    pub fn placements(&self) -> impl Iterator<Item = Placement> {
        let said = [(self.in_place, Placement::InPlace), (self.out_of_place, Placement::OutOfPlace)];
        said.into_iter().filter_map(|(said, placement)| said.then_some(placement))
    }
}
