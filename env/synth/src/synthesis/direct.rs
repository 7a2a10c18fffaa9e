//! As few hops as the sketch allows: each chunk goes straight to one rank of every other node, and from there to its
//! neighbours.
//!
//! Nothing is timed here. Where large chunks are cut into tiles, a short way keeps every NIC busy: what enters
//! a node with one tile is spread inside while the next one enters. Long ways, however well they fit together
//! when every link is used alone, wait for each other once links are shared.

use super::belief::{Belief, Link};
use super::{Spread, Task};
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
) -> Result<Vec<Spread>, SynthError> {
    let mut ways = Ways::new(machine, belief, task);
    for chunk in 0..task.total() {
        if stop() {
            return Err(SynthError::Stopped);
        }
        if let Some(rank) = ways.grow(chunk, task.owner(chunk)) {
            return Err(SynthError::Unreached { sketch: sketch.name.clone(), rank, chunk });
        }
    }
    Ok(ways.timed())
}

/// A chunk over a link, so many hops after its owner.
struct Hop {
    level: usize,
    chunk: u32,
    link: u32,
}

struct Ways<'a> {
    machine: &'a Machine,
    belief: &'a Belief,
    /// Links out of a rank.
    out: Vec<Vec<u32>>,
    /// Picoseconds that chunks so far keep each link, and each shared thing, busy.
    of_link: Vec<u64>,
    of_shared: Vec<u64>,
    hops: Vec<Hop>,
}

impl<'a> Ways<'a> {
    fn new(machine: &'a Machine, belief: &'a Belief, task: &Task) -> Self {
        let (of_link, of_shared) = (vec![0; belief.links.len()], vec![0; belief.shared]);
        Ways { machine, belief, out: belief.out(task.ranks), of_link, of_shared, hops: Vec::new() }
    }

    /// Finds the ways of one chunk, level by level; a rank that it cannot reach, if there is one.
    fn grow(&mut self, chunk: u32, owner: u32) -> Option<u32> {
        let (machine, belief) = (self.machine, self.belief);
        let mut there = vec![false; self.out.len()];
        let mut entered = vec![false; machine.nodes()];
        there[owner as usize] = true;
        entered[machine.node(owner) as usize] = true;
        // Of links to the same place one is enough: to the same node, or to the same rank inside one.
        let whereto = |number: u32| {
            let link = &belief.links[number as usize];
            (!link.remote, if link.remote { machine.node(link.to) } else { link.to })
        };
        let mut newest = vec![owner];
        for level in 0.. {
            let mut links: Vec<u32> =
                newest.iter().flat_map(|&rank| &self.out[rank as usize]).copied().collect();
            links.retain(|&number| {
                let link = &belief.links[number as usize];
                !there[link.to as usize] && (!link.remote || !entered[machine.node(link.to) as usize])
            });
            if links.is_empty() {
                break;
            }
            links.sort_by_key(|&number| whereto(number));
            newest.clear();
            for alike in links.chunk_by(|&a, &b| whereto(a) == whereto(b)) {
                let number = alike.iter().copied().min_by_key(|&number| self.cost(owner, number));
                let number = number.unwrap_or(alike[0]);
                let to = self.load(number).to;
                there[to as usize] = true;
                entered[machine.node(to) as usize] = true;
                newest.push(to);
                self.hops.push(Hop { level, chunk, link: number });
            }
        }
        there.iter().zip(0..).find(|(there, _)| !**there).map(|(_, rank)| rank)
    }

    /// What speaks against a link: how many nodes it begins after the owner's, then how busy it is. Trees that
    /// prefer the same distances are turned copies of each other, so together they load every NIC alike.
    fn cost(&self, owner: u32, number: u32) -> (u32, u64, u64) {
        let nodes = self.machine.nodes() as u32;
        let from = self.machine.node(self.belief.links[number as usize].from);
        let [shared, own] = self.loaded(number);
        ((from + nodes - self.machine.node(owner)) % nodes, shared, own)
    }

    /// How busy a link is: what it shares, then itself.
    fn loaded(&self, number: u32) -> [u64; 2] {
        let link = &self.belief.links[number as usize];
        let shared = link.shared.into_iter().flatten().map(|shared| self.of_shared[shared as usize]);
        [shared.max().unwrap_or(0), self.of_link[number as usize]]
    }

    /// Adds a chunk to what a link carries.
    fn load(&mut self, number: u32) -> &'a Link {
        let link = &self.belief.links[number as usize];
        self.of_link[number as usize] += link.busy;
        for shared in link.shared.into_iter().flatten() {
            self.of_shared[shared as usize] += link.busy;
        }
        link
    }

    /// The hops, one level after the other, each as long as its busiest link or shared thing.
    fn timed(mut self) -> Vec<Spread> {
        let hops = std::mem::take(&mut self.hops);
        let levels = hops.iter().map(|hop| hop.level + 1).max().unwrap_or(0);
        let mut begins = vec![0; levels + 1];
        for level in 0..levels {
            self.of_link.fill(0);
            self.of_shared.fill(0);
            let mut last = 0;
            for hop in hops.iter().filter(|hop| hop.level == level) {
                let hop_time = self.load(hop.link).hop;
                let [shared, own] = self.loaded(hop.link);
                last = last.max(shared.max(own) + hop_time);
            }
            begins[level + 1] = begins[level] + last;
        }
        let spread = |hop: &Hop| {
            let Link { from, to, .. } = self.belief.links[hop.link as usize];
            Spread { start: begins[hop.level], end: begins[hop.level + 1], chunk: hop.chunk, from, to }
        };
        hops.iter().map(spread).collect()
    }
}
