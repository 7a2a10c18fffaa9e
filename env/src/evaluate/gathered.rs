//! What one worker has found, before figures are made of it, and putting several together.

use std::collections::BTreeMap;

use dynamiccl_spec::Choice;

use super::judge::{CellTally, Tally};
use super::report::Place;
use crate::nccl::Realised;

/// The cells of a piece of work, and what every entrant did there.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// The cells.
    pub cells: Vec<Cell>,
    /// By entrant, then by seed; tallies count cells as above.
    pub players: Vec<Vec<Tally>>,
}

/// A cell, and what can run in it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Where it is.
    pub place: Place,
    /// Its tier.
    pub tier: u8,
    /// Whether its cluster is held out.
    pub held_out: bool,
    /// NCCL's own among the choices.
    pub own: usize,
    /// How often each choice was the fastest.
    pub fastest: Vec<f64>,
    /// Mean ln µs of each choice over the worlds of each seed; empty where not every choice of every call is known.
    pub logs: Vec<Vec<f64>>,
    /// What can run; knobs that NCCL runs alike are one.
    pub choices: Vec<(Choice, Realised)>,
}

/// The mean over seeds of what each choice takes.
pub fn mean_of_seeds(logs: &[Vec<f64>]) -> Vec<f64> {
    let choices = logs.first().map_or(0, Vec::len);
    (0..choices).map(|at| logs.iter().map(|seed| seed[at]).sum::<f64>() / logs.len() as f64).collect()
}

/// The choice that takes least; NCCL's own where none takes less.
pub fn least(own: usize, logs: &[f64]) -> usize {
    logs.iter().enumerate().fold(own, |best, (at, log)| if *log < logs[best] { at } else { best })
}

impl Gathered {
    /// All of them as one, in which every place is one cell.
    pub fn join(parts: Vec<Gathered>) -> Gathered {
        let mut joined = Gathered::default();
        let mut known: BTreeMap<Place, usize> = BTreeMap::new();
        for part in parts {
            let seats: Vec<usize> = part.cells.iter().map(|cell| joined.seat(cell, &mut known)).collect();
            let choices: Vec<Vec<usize>> =
                part.cells.iter().zip(&seats).map(|(cell, &seat)| joined.cells[seat].take_in(cell)).collect();
            joined.players.resize_with(part.players.len().max(joined.players.len()), Vec::new);
            for (player, seeds) in joined.players.iter_mut().zip(part.players) {
                player.resize_with(seeds.len().max(player.len()), Tally::default);
                for (whole, tally) in player.iter_mut().zip(seeds) {
                    whole.episodes.extend(tally.episodes);
                    for (at, cell) in tally.cells.iter().enumerate() {
                        whole.cell(seats[at]).add(cell, &choices[at]);
                    }
                }
            }
        }
        joined
    }

    /// Leaves out what is of another tier.
    pub fn keep(&mut self, tier: impl Fn(u8) -> bool) {
        let kept: Vec<bool> = self.cells.iter().map(|cell| tier(cell.tier)).collect();
        let mut cells = kept.iter();
        self.cells.retain(|_| *cells.next().unwrap_or(&true));
        for tally in self.players.iter_mut().flatten() {
            let mut cells = kept.iter();
            tally.cells.retain(|_| *cells.next().unwrap_or(&true));
            tally.episodes.retain(|episode| tier(episode.tier));
        }
    }

    fn seat(&mut self, cell: &Cell, known: &mut BTreeMap<Place, usize>) -> usize {
        *known.entry(cell.place.clone()).or_insert_with(|| {
            let empty = Cell { fastest: Vec::new(), logs: Vec::new(), choices: Vec::new(), ..cell.clone() };
            self.cells.push(empty);
            self.cells.len() - 1
        })
    }
}

impl Cell {
    /// Adds what can run elsewhere in the same place; where each of its choices stands here.
    fn take_in(&mut self, other: &Cell) -> Vec<usize> {
        let seat = |entry: &(Choice, Realised)| {
            let known = self.choices.iter().position(|(choice, _)| *choice == entry.0);
            known.unwrap_or_else(|| {
                self.choices.push(*entry);
                self.fastest.push(0.0);
                self.choices.len() - 1
            })
        };
        let seats: Vec<usize> = other.choices.iter().map(seat).collect();
        for (&seat, times) in seats.iter().zip(&other.fastest) {
            self.fastest[seat] += times;
        }
        self.own = seats.get(other.own).copied().unwrap_or(self.own);
        seats
    }
}

impl CellTally {
    fn add(&mut self, other: &CellTally, choices: &[usize]) {
        self.judged = self.judged.and(other.judged);
        self.held = self.held.and(other.held);
        self.calls += other.calls;
        self.left += other.left;
        self.estimated += other.estimated;
        self.covered += other.covered;
        self.unrunnable += other.unrunnable;
        for (whole, part) in [(&mut self.ran, &other.ran), (&mut self.decided, &other.decided)] {
            part.0.iter().zip(choices).for_each(|(&times, &seat)| whole.add(seat, times));
        }
    }
}
