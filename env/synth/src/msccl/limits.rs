//! What MSCCL's executors have room for; a file beyond it is refused by them, or worse, is not.

use super::{Algorithm, Program};
use crate::error::SynthError;

/// Steps of a thread block, as executors are built by default.
const STEPS: usize = 64;
/// Chunks of one step.
const COUNT: usize = 71;
/// Peers of a rank in one channel, in one direction.
const PEERS: usize = 32;
/// Thread blocks of a rank: a dependency names one in a signed byte.
const BLOCKS: usize = 127;
/// XML elements of one rank.
const ELEMENTS: usize = 4096;

const FEWER_CHUNKS: &str = "use fewer chunks, or a schedule inside nodes and one between them";
const FEWER_LINKS: &str = "use a sketch with fewer connections, or fewer channels";

/// Refuses what executors have no room for.
pub fn check(algorithm: &Algorithm) -> Result<(), SynthError> {
    for (program, rank) in algorithm.programs.iter().zip(0..) {
        let limit = |what, value, limit, remedy| {
            if value <= limit { Ok(()) } else { Err(SynthError::Limit { rank, what, value, limit, remedy }) }
        };
        limit("thread blocks", program.blocks.len(), BLOCKS, FEWER_LINKS)?;
        limit("peers of a channel", peers(program, algorithm.channels), PEERS, FEWER_LINKS)?;
        let steps = program.blocks.iter().map(|block| block.steps.len());
        limit("steps of a thread block", steps.clone().max().unwrap_or(0), STEPS, FEWER_CHUNKS)?;
        limit("XML elements", 1 + program.blocks.len() + steps.sum::<usize>(), ELEMENTS, FEWER_CHUNKS)?;
        let counts = program.blocks.iter().flat_map(|block| &block.steps).map(|step| step.count as usize);
        limit("chunks of a step", counts.max().unwrap_or(0), COUNT, "cut the step into several")?;
    }
    Ok(())
}

/// The most peers of one direction in one channel.
fn peers(program: &Program, channels: u32) -> usize {
    let most = |channel: u32| {
        let blocks = || program.blocks.iter().filter(move |block| block.channel == channel);
        let sends = blocks().filter(|block| block.send.is_some()).count();
        sends.max(blocks().filter(|block| block.recv.is_some()).count())
    };
    (0..channels).map(most).max().unwrap_or(0)
}
