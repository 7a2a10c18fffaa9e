//! Rings over the links of a sketch: as many as chunks, each leaving a node by another NIC where it can.

use super::belief::Belief;
use super::{Spread, Task};
use crate::error::SynthError;
use crate::machine::Machine;
use crate::sketch::Sketch;
use crate::stop::Stop;

/// Looks that a search for a way takes at most before it gives up.
const PATIENCE: u32 = 200_000;

/// Spreads every chunk from its owner round a ring.
pub fn spread(
    stop: Stop<'_>,
    machine: &Machine,
    sketch: &Sketch,
    belief: &Belief,
    task: &Task,
) -> Result<Vec<Spread>, SynthError> {
    let mut rings: Vec<Vec<u32>> = Vec::new();
    for turn in 0..task.chunks {
        let ring = Ways { machine, sketch, turn, looks: 0 }.ring();
        rings.push(ring.ok_or_else(|| SynthError::NoRing { sketch: sketch.name.clone() })?);
    }
    let slowest = belief.links.iter().map(|link| link.busy + link.hop).max().unwrap_or(1);
    let mut sends = Vec::new();
    for chunk in 0..task.total() {
        if stop() {
            return Err(SynthError::Stopped);
        }
        let ring = &rings[(chunk % task.chunks) as usize];
        let Some(first) = ring.iter().position(|&rank| rank == task.owner(chunk)) else { continue };
        // From one owner chunks follow each other; from several they move together.
        let before = if task.rooted { u64::from(chunk / task.chunks) } else { 0 };
        for step in 0..ring.len() - 1 {
            let (from, to) = (ring[(first + step) % ring.len()], ring[(first + step + 1) % ring.len()]);
            let start = (before + step as u64) * slowest;
            sends.push(Spread { start, end: start + slowest, chunk, from, to });
        }
    }
    Ok(sends)
}

struct Ways<'a> {
    machine: &'a Machine,
    sketch: &'a Sketch,
    turn: u32,
    looks: u32,
}

impl Ways<'_> {
    /// A ring through all ranks that visits node after node.
    fn ring(&mut self) -> Option<Vec<u32>> {
        let nodes = self.machine.nodes() as u32;
        let ranks: Vec<u32> = self.machine.ranks_of(0).collect();
        let starts = ranks.iter().cycle().skip(self.turn as usize % ranks.len()).take(ranks.len());
        for &start in starts {
            let mut way = vec![start];
            if self.node(0, nodes, &mut way) {
                return Some(way);
            }
        }
        None
    }

    /// Goes on from the end of `way`, which has just entered a node, to the end of the last node.
    fn node(&mut self, node: u32, nodes: u32, way: &mut Vec<u32>) -> bool {
        let left: Vec<u32> = self.machine.ranks_of(node).filter(|rank| !way.contains(rank)).collect();
        self.through(node, nodes, left, way)
    }

    fn through(&mut self, node: u32, nodes: u32, left: Vec<u32>, way: &mut Vec<u32>) -> bool {
        self.looks += 1;
        let at = way[way.len() - 1];
        if self.looks > PATIENCE {
            return false;
        }
        if left.is_empty() {
            if node + 1 == nodes {
                return self.sketch.has(at, way[0]);
            }
            let next: Vec<u32> =
                self.machine.ranks_of(node + 1).filter(|&to| self.sketch.has(at, to)).collect();
            return next.into_iter().any(|to| {
                way.push(to);
                let found = self.node(node + 1, nodes, way);
                if !found {
                    way.pop();
                }
                found
            });
        }
        let turn = self.turn as usize % left.len();
        for place in (turn..left.len()).chain(0..turn) {
            if self.sketch.has(at, left[place]) {
                let mut rest = left.clone();
                way.push(rest.remove(place));
                if self.through(node, nodes, rest, way) {
                    return true;
                }
                way.pop();
            }
        }
        false
    }
}
