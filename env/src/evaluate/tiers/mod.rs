//! Whether a tuner has understood tiers: what it does with the same call near and far, and with calls that
//! NCCL cannot tell apart.
//!
//! Two questions, each with a table and an answer. This only compares what was chosen; how tuners are judged
//! is the evaluation's business.

mod equal;
mod same_call;
#[cfg(test)]
mod tests;

use dynamiccl_spec::Pair;
use serde::Serialize;

pub use equal::{Contrast, EqualTables, SWAP};
pub use same_call::{AtTier, LIMIT, SameCall, SameCalls};

use crate::nccl::Realised;

/// Knobs as NCCL runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Launch {
    /// Algorithm and protocol.
    #[serde(flatten)]
    pub pair: Pair,
    /// Channels that run.
    pub nchannels: u32,
    /// Threads per block.
    pub nthreads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
}

impl Launch {
    fn of(realised: &Realised) -> Self {
        let Realised { pair, channels, threads, chunk_bytes, .. } = *realised;
        Launch { pair, nchannels: channels, nthreads: threads, chunk_bytes }
    }
}
