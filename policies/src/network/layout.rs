//! Where things lie in the rows that a network reads and in the sums that it works out side by side.

use std::ops::Range;

use dynamiccl_spec::Head;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::ids::PAIRS;

/// Where the inputs with a meaning of their own lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots {
    /// The role of a call, within the job's part of a context.
    pub role: Range<usize>,
    /// NCCL's predicted times, within the call's part of a context.
    pub cost: Range<usize>,
}

impl Slots {
    pub fn new() -> Self {
        let slot = |name| slot(name).expect("a feature of this encoding");
        Slots { role: slot("pipeline_role"), cost: slot("nccl_cost") }
    }
}

/// The sums over what an expert says: those of the path, the pairs, the estimates and the resources.
pub(super) const PATH: Range<usize> = 0..Head::Path.size();
/// Pairs.
pub(super) const PAIR: Range<usize> = PATH.end..PATH.end + PAIRS;
/// Means of the estimates, pair by pair.
pub(super) const MEANS: Range<usize> = PAIR.end..PAIR.end + PAIRS;
/// Where the resources begin, which are as many as a shape says.
pub(super) const RESOURCE: usize = MEANS.end;

/// The sums over the resources: those of the channels, the chunk, the threads and the gain.
pub(super) const CHANNELS: Range<usize> = 0..Head::Channels.size();
/// Chunk.
pub(super) const CHUNK: Range<usize> = CHANNELS.end..CHANNELS.end + Head::Chunk.size();
/// Threads.
pub(super) const THREADS: Range<usize> = CHUNK.end..CHUNK.end + Head::Threads.size();
/// Mean of the gain and ln of its spread.
pub(super) const GAIN: Range<usize> = THREADS.end..THREADS.end + 2;
