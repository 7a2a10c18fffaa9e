//! A schedule as a program for every rank: one thread block for each connection's beginning and one for its
//! end, in every channel; a step waits for the one that last wrote its chunk.
//!
//! Steps of a block follow the schedule's order, and so does every wait, so that no two can wait for each
//! other, whatever the executors' buffers hold.

use std::collections::HashMap;

use dynamiccl_spec::{Collective, Protocol};

use super::{Algorithm, Block, Buffer, Coll, Op, Program, Step, limits};
use crate::backend::Backend;
use crate::error::SynthError;
use crate::schedule::{Phase, Schedule};

/// The program of a schedule, or the limit of the executors that it breaks.
pub fn export(schedule: &Schedule, backend: &Backend, name: &str) -> Result<Algorithm, SynthError> {
    let coll = match schedule.collective {
        Collective::AllGather => Coll::AllGather,
        Collective::AllReduce => Coll::AllReduce,
        Collective::ReduceScatter => Coll::ReduceScatter,
        Collective::Broadcast => Coll::Broadcast,
        Collective::Reduce => Coll::Reduce,
        other => return Err(SynthError::Collective(other)),
    };
    let channels = backend.channels.max(1);
    let chunks = schedule.total_chunks() * channels;
    let gathers = coll == Coll::AllGather;
    let (inputs, outputs) = if gathers { (0, chunks) } else { (chunks, 0) };
    let program =
        |rank| Program { inputs, outputs, scratch: 0, blocks: blocks(schedule, channels, rank, gathers) };
    let algorithm = Algorithm {
        name: name.to_owned(),
        protocol: protocol(backend.protocol).to_owned(),
        channels,
        chunks,
        coll,
        in_place: true,
        out_of_place: false,
        sizes: (0, 0),
        programs: (0..schedule.ranks).map(program).collect(),
    };
    limits::check(&algorithm)?;
    Ok(algorithm)
}

/// MSCCL's word for a protocol.
const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::LL => "LL",
        Protocol::LL128 => "LL128",
        Protocol::Simple => "Simple",
    }
}

/// One end of a connection: whether it sends, and to or from whom.
type End = (bool, u32);

fn blocks(schedule: &Schedule, channels: u32, rank: u32, gathers: bool) -> Vec<Block> {
    let buffer = if gathers { Buffer::Output } else { Buffer::Input };
    let mut all = Vec::new();
    for channel in 0..channels {
        let first = all.len() as u32;
        let mut places: HashMap<End, u32> = HashMap::new();
        let mut blocks: Vec<Block> = Vec::new();
        // The block and step that last wrote a chunk.
        let mut written: HashMap<u32, (u32, u32)> = HashMap::new();
        for send in schedule.sends.iter().filter(|send| send.from == rank || send.to == rank) {
            let sends = send.from == rank;
            let peer = if sends { send.to } else { send.from };
            let place = *places.entry((sends, peer)).or_insert_with(|| {
                let (to, from) = if sends { (Some(peer), None) } else { (None, Some(peer)) };
                let id = first + blocks.len() as u32;
                blocks.push(Block { id, send: to, recv: from, channel, steps: Vec::new() });
                blocks.len() as u32 - 1
            });
            let own = first + place;
            let at = (buffer, (send.chunk * channels + channel) as i32);
            // What a complete chunk overwrites has been sent before it was complete: nothing to wait for.
            let waits = sends || send.phase == Phase::Reduce;
            let last = written.get(&send.chunk).copied().filter(|(block, _)| waits && *block != own);
            let after = last.filter(|&(block, step)| !blocks[place as usize].has_waited_for(block, step));
            let op = match (sends, send.phase) {
                (true, _) => Op::Send,
                (false, Phase::Reduce) => Op::RecvReduceCopy,
                (false, Phase::Gather) => Op::Recv,
            };
            let steps = &mut blocks[place as usize].steps;
            steps.push(Step { op, source: at, target: at, count: 1, after, awaited: false });
            if !sends {
                let step = blocks[place as usize].steps.len() as u32 - 1;
                written.insert(send.chunk, (own, step));
            }
        }
        all.extend(blocks);
    }
    mark_awaited(&mut all);
    all
}

impl Block {
    /// Whether an earlier step has waited for this step of another block, or for a later one.
    fn has_waited_for(&self, block: u32, step: u32) -> bool {
        self.steps
            .iter()
            .filter_map(|earlier| earlier.after)
            .any(|(other, done)| other == block && done >= step)
    }
}

/// Tells every step that another waits for.
fn mark_awaited(blocks: &mut [Block]) {
    let awaited: Vec<(u32, u32)> =
        blocks.iter().flat_map(|b| &b.steps).filter_map(|step| step.after).collect();
    for (block, step) in awaited {
        blocks[block as usize].steps[step as usize].awaited = true;
    }
}
