//! Load-aware multicast: each chunk goes along the tree that reaches everybody first, over links that
//! earlier chunks have loaded; as TACCL routes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::belief::Belief;
use super::{Recipe, Spread, Task};
use crate::error::SynthError;
use crate::machine::Machine;
use crate::sketch::Sketch;
use crate::stop::Stop;

/// Spreads every chunk from its owner to all ranks.
pub fn spread(
    stop: Stop<'_>,
    machine: &Machine,
    sketch: &Sketch,
    belief: &Belief,
    task: &Task,
    recipe: &Recipe,
) -> Result<Vec<Spread>, SynthError> {
    let mut growth = Growth {
        machine,
        belief,
        out: belief.out(task.ranks),
        local: recipe.local,
        link_free: vec![0; belief.links.len()],
        shared_free: vec![0; belief.shared],
        random: ChaCha8Rng::seed_from_u64(recipe.seed),
        sends: Vec::new(),
    };
    // Round by round over the owners, so that no owner's chunks come last.
    for round in 0..task.chunks {
        for rank in 0..task.ranks {
            if stop() {
                return Err(SynthError::Stopped);
            }
            let chunk = rank * task.chunks + round;
            if let Some(rank) = growth.grow(chunk, task.owner(chunk), task.ranks) {
                return Err(SynthError::Unreached { sketch: sketch.name.clone(), rank, chunk });
            }
        }
    }
    Ok(growth.sends)
}

struct Growth<'a> {
    machine: &'a Machine,
    belief: &'a Belief,
    out: Vec<Vec<u32>>,
    local: bool,
    /// When a link, or something shared, is free.
    link_free: Vec<u64>,
    shared_free: Vec<u64>,
    random: ChaCha8Rng,
    sends: Vec<Spread>,
}

impl Growth<'_> {
    /// When a link could start with a chunk that is there at `from`.
    fn start(&self, number: u32, from: u64) -> u64 {
        let link = &self.belief.links[number as usize];
        let shared = link.shared.into_iter().flatten().map(|shared| self.shared_free[shared as usize]);
        shared.fold(from.max(self.link_free[number as usize]), u64::max)
    }

    /// Grows the tree of one chunk; a rank that it cannot reach, if there is one.
    fn grow(&mut self, chunk: u32, owner: u32, ranks: u32) -> Option<u32> {
        let mut there: Vec<Option<u64>> = vec![None; ranks as usize];
        let mut entered = vec![false; self.machine.nodes()];
        there[owner as usize] = Some(0);
        entered[self.machine.node(owner) as usize] = true;
        let mut queue = BinaryHeap::new();
        self.offer(owner, 0, &there, &mut queue);
        while let Some(Reverse((arrival, tie, number))) = queue.pop() {
            let link = self.belief.links[number as usize];
            let (Some(from), None) = (there[link.from as usize], there[link.to as usize]) else { continue };
            let node = self.machine.node(link.to) as usize;
            if self.local && link.remote && entered[node] {
                continue;
            }
            let start = self.start(number, from);
            let end = start + link.busy + link.hop;
            // This tree itself may have loaded the link since it was offered.
            if end > arrival {
                queue.push(Reverse((end, tie, number)));
                continue;
            }
            self.link_free[number as usize] = start + link.busy;
            for shared in link.shared.into_iter().flatten() {
                self.shared_free[shared as usize] = start + link.busy;
            }
            self.sends.push(Spread { start, end, chunk, from: link.from, to: link.to });
            there[link.to as usize] = Some(end);
            entered[node] = true;
            self.offer(link.to, end, &there, &mut queue);
        }
        there.iter().zip(0..).find(|(there, _)| there.is_none()).map(|(_, rank)| rank)
    }

    fn offer(
        &mut self,
        rank: u32,
        at: u64,
        there: &[Option<u64>],
        queue: &mut BinaryHeap<Reverse<(u64, u32, u32)>>,
    ) {
        for place in 0..self.out[rank as usize].len() {
            let number = self.out[rank as usize][place];
            let link = &self.belief.links[number as usize];
            if there[link.to as usize].is_none() {
                let end = self.start(number, at) + link.busy + link.hop;
                queue.push(Reverse((end, self.random.next_u32(), number)));
            }
        }
    }
}
