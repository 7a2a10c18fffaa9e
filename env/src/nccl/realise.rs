//! What becomes of a choice of knobs when real NCCL carries it out through a tuner plugin.

use dynamiccl_spec::{ChunkChoice, Collective, CostTable, Knobs, Pair};

use super::comm::Communicator;
use super::launch::{align, chunk_ceiling, grain};

/// A choice of knobs as NCCL runs it, after all of its caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realised {
    /// Algorithm and protocol.
    pub pair: Pair,
    /// The most channels that the scheduler could use.
    pub max_channels: u32,
    /// Channels that run.
    pub channels: u32,
    /// Threads per block.
    pub threads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
    /// Bytes of the most loaded channel.
    pub share_bytes: u64,
}

impl Communicator {
    /// Carries out a choice of knobs; nothing where its pair is unavailable in NCCL's table.
    ///
    /// The path is not looked at: it says who carries the call, and this is what NCCL would do.
    pub fn realise(
        &self,
        collective: Collective,
        bytes: u64,
        table: &CostTable,
        knobs: &Knobs,
    ) -> Option<Realised> {
        let pair = match knobs.pair {
            Some(pair) => table.get(pair).map(|_| pair)?,
            None => table.best()?.0,
        };
        let most_threads = self.threads.requested(pair, knobs.threads.requested());
        let (own_channels, threads) = self.channels_threads_with(pair, bytes, most_threads);
        let limit = self.channel_limit(pair).max(1);
        let max_channels = knobs.channels.requested().unwrap_or(own_channels).clamp(1, limit);
        let (channels, share) = self.split(collective, pair, bytes, max_channels);
        let own_chunk = self.raw_chunk(collective, pair, bytes, channels, share[0]);
        let chunk = if self.version.has_chunk_knob() { knobs.chunk } else { ChunkChoice::Own };
        Some(Realised {
            pair,
            max_channels,
            channels,
            threads,
            chunk_bytes: chosen_chunk(collective, pair, own_chunk, chunk),
            share_bytes: share.into_iter().max().unwrap_or(0),
        })
    }
}

fn chosen_chunk(collective: Collective, pair: Pair, own: u64, choice: ChunkChoice) -> u64 {
    // The ceiling bounds what a plugin adds, never what NCCL has chosen itself.
    let ceiling = chunk_ceiling(collective, pair).max(own);
    align(choice.apply(own).min(ceiling), pair.protocol).max(grain(pair.protocol))
}
