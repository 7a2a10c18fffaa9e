//! Judging on cells: every collective and size on every machine, each call's truth looked up in a table.
//!
//! NCCL's side of a cell does not depend on the world, so what can run is listed once per machine; a world
//! adds one vector of true times for each stretch of steady weather. An episode is 1000 calls over eleven
//! kinds, one for each size. Which collective goes with which size moves from episode to episode, so that
//! five of them make every cell (a Latin design). Calls leave no congestion behind: what a choice costs the
//! calls after it belongs to jobs, not to cells.

mod episode;
mod options;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use dynamiccl_spec::features::Encoder;
use dynamiccl_spec::{Collective, Tuner};

use self::episode::Episode;
use self::options::Ground;
use self::table::Table;
use super::calls::{play, play_fastest};
use super::entrant::{Entrant, Player};
use super::gathered::{Cell, Gathered, least, mean_of_seeds};
use super::judge::{Judge, Tally};
use super::machines::Machine;
use super::report::Place;
use crate::cluster::ClusterError;
use crate::memory::Memory;
use crate::model::ConstantsFile;
use crate::schedules::Schedules;
use crate::sim::Simulator;
use crate::world::World;

/// Episodes in which every cell comes up once.
pub const EPISODES: usize = Collective::TUNED.len();

/// Judges all entrants on one machine, with these schedules where there is a runtime for them. `worlds` are those of each seed; `step` hears of every world and may
/// end the work.
pub fn judge<E>(
    (schedules, constants): (Option<&dyn Schedules>, &ConstantsFile),
    machine: &Machine,
    sizes: &[u64],
    worlds: &[Vec<World>],
    entrants: &[Entrant],
    seed_of_tuner: impl Fn(usize) -> u64,
    step: impl Fn() -> Result<(), E>,
) -> Result<Result<Gathered, E>, ClusterError> {
    let ground = Ground::new(machine, sizes, schedules, constants)?;
    let mut episodes: Vec<Vec<Episode>> = Vec::new();
    for world in worlds.iter().flatten() {
        let simulator = Simulator::new(&machine.cluster, machine.nodes, &machine.options(), world)?;
        let weather = world.weather(&machine.cluster, machine.nodes);
        episodes.push(Episode::all(&ground, &simulator, weather, world.seed().unwrap_or(0)));
    }
    let logs = logs(&ground, &episodes, worlds);
    let fixed = best_fixed(&ground, &logs);
    let mut players: Vec<Vec<Tally>> = entrants.iter().map(|_| Vec::new()).collect();
    let mut memory = Memory::new(1, Some(1));
    let mut first = 0;
    for (seed, worlds) in worlds.iter().enumerate() {
        let mut seats: Vec<Seat<'_>> =
            entrants.iter().map(|e| Seat::new(e, &ground, &fixed, seed_of_tuner(seed))).collect();
        for of_world in &episodes[first..first + worlds.len()] {
            for episode in of_world {
                for seat in &mut seats {
                    let encoder = Arc::clone(&seat.encoder);
                    seat.play(&mut Table::new(&ground, episode, encoder, &mut memory), machine);
                }
            }
            if let Err(stopped) = step() {
                return Ok(Err(stopped));
            }
        }
        first += worlds.len();
        for (seat, tallies) in seats.into_iter().zip(&mut players) {
            tallies.push(seat.tally);
        }
    }
    Ok(Ok(Gathered { cells: cells(machine, &ground, &episodes, logs), players }))
}

/// An entrant on a machine.
struct Seat<'a> {
    hand: Hand<'a>,
    tally: Tally,
    /// What it is told of the job.
    encoder: Arc<Encoder>,
}

enum Hand<'a> {
    /// One that is told what came of its choices, and one that is not.
    Tuner {
        told: Box<dyn Tuner>,
        held: Box<dyn Tuner>,
    },
    Fastest,
    Fixed(&'a [usize]),
}

impl<'a> Seat<'a> {
    fn new(entrant: &Entrant, ground: &Ground, fixed: &'a [usize], seed: u64) -> Self {
        let hand = match &entrant.player {
            Player::Tuner(make) => Hand::Tuner { told: make(seed), held: make(seed) },
            Player::Oracle => Hand::Fastest,
            Player::Bayes => Hand::Fixed(fixed),
        };
        Seat { hand, tally: Tally::default(), encoder: Arc::new(ground.encoder.without(&entrant.hidden)) }
    }

    /// Goes through one episode, with and without feedback.
    fn play(&mut self, table: &mut Table<'_>, machine: &Machine) {
        let mut judge = Judge::new(&mut self.tally, false);
        match &mut self.hand {
            Hand::Tuner { told, .. } => play(table, told.as_mut(), false, &mut judge),
            Hand::Fastest => play_fastest(table, &mut judge),
            Hand::Fixed(fixed) => table.play_fixed(fixed, &mut judge),
        }
        judge.finish(machine.tier, machine.held_out);
        match &mut self.hand {
            Hand::Tuner { held, .. } => {
                let decided = table.hold(held.as_mut());
                table.judge_held(&mut self.tally, |kind, _| decided[kind]);
            }
            Hand::Fastest => table.judge_fastest_held(&mut self.tally),
            Hand::Fixed(fixed) => table.judge_held(&mut self.tally, |_, cell| fixed[cell]),
        }
    }
}

/// By cell, then by seed, the mean ln time of each launch, over the judged calls of a world and then over the seed's worlds.
fn logs(ground: &Ground, episodes: &[Vec<Episode>], worlds: &[Vec<World>]) -> Vec<Vec<Vec<f64>>> {
    let none = |cell: &options::Options| vec![vec![0.0; cell.launches.len()]; worlds.len()];
    let mut sums: Vec<Vec<Vec<f64>>> = ground.cells.iter().map(none).collect();
    let seeds = worlds.iter().enumerate().flat_map(|(seed, worlds)| worlds.iter().map(move |_| seed));
    for (seed, of_world) in seeds.zip(episodes) {
        for (cell, truth) in of_world.iter().flat_map(Episode::truths) {
            let calls = truth.calls().max(1.0) * worlds[seed].len() as f64;
            for (times, weight) in truth.segments() {
                for (sum, time) in sums[cell][seed].iter_mut().zip(times) {
                    *sum += weight / calls * time.log;
                }
            }
        }
    }
    sums
}

/// The launch of each cell that has the least mean over seeds, which have as many worlds each.
fn best_fixed(ground: &Ground, logs: &[Vec<Vec<f64>>]) -> Vec<usize> {
    ground.cells.iter().zip(logs).map(|(cell, logs)| least(cell.own, &mean_of_seeds(logs))).collect()
}

/// The cells of a machine, with what was fastest in them how often.
fn cells(
    machine: &Machine,
    ground: &Ground,
    episodes: &[Vec<Episode>],
    logs: Vec<Vec<Vec<f64>>>,
) -> Vec<Cell> {
    let mut fastest: Vec<Vec<f64>> = ground.cells.iter().map(|cell| vec![0.0; cell.launches.len()]).collect();
    for (cell, truth) in episodes.iter().flatten().flat_map(Episode::truths) {
        for (at, weight) in truth.fastest() {
            fastest[cell][at] += weight;
        }
    }
    let cell = |((options, fastest), logs): ((&options::Options, Vec<f64>), Vec<Vec<f64>>)| Cell {
        place: Place {
            cluster: machine.cluster.name.clone(),
            nodes: machine.nodes,
            collective: options.asked.call.collective,
            bytes: options.asked.call.bytes,
        },
        tier: machine.tier,
        held_out: machine.held_out,
        own: options.own,
        fastest,
        logs,
        choices: options.launches.iter().map(|launch| (launch.choice, launch.realised)).collect(),
    };
    ground.cells.iter().zip(fastest).zip(logs).map(cell).collect()
}
