//! `tune`: searches the settings of a call, or of all calls of a machine, by noisy trials, and says how
//! good what it finds is by true times.

mod report;
mod save;
mod task;
mod text;

use std::time::Instant;

use anyhow::{Result, ensure};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::CommOptions;
use dynamiccl_env::headroom;
use dynamiccl_env::job::Shown;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_policies::random::Random;
use dynamiccl_spec::math::exp;
use dynamiccl_spec::{Bytes, Collective};

use super::machine;
use crate::args::TuneArgs;
use crate::exit::Ending;
use crate::interrupt::Interrupted;
use crate::progress::Progress;
use crate::session::Session;
use report::{About, Report, Tuned};
use save::Saved;
use task::Task;

/// Calls of a full measurement; a trial with less resource is the mean of fewer.
const CALLS: f64 = 27.0;

/// Makes the plan and carries it out.
pub fn run(args: &TuneArgs, session: &Session) -> Result<Ending> {
    let plan = Plan::new(args, session.seed)?;
    let (found, interrupted) = plan.search(session)?;
    if let Some(saved) = &plan.saved {
        saved.write(&plan.about, session.seed, &found.calls)?;
        let left = plan.cells.len() - found.calls.len();
        if interrupted.is_some() {
            session.output.note(format_args!("{left} calls are left; --resume goes on with them"));
        }
    }
    if let Some(interrupted) = interrupted {
        return Err(interrupted.into());
    }
    let report = Report::new(plan.about, found.calls, found.search_us, found.searched);
    session.report("tune", &report)?;
    Ok(Ending::Done)
}

/// What is tuned.
struct Plan<'a> {
    args: &'a TuneArgs,
    about: About,
    asking: Asking,
    simulator: Simulator,
    cells: Vec<(Collective, u64)>,
    saved: Option<Saved>,
    /// What an earlier run has found.
    earlier: Vec<Tuned>,
}

/// What has been found.
#[derive(Default)]
struct Found {
    calls: Vec<Tuned>,
    /// µs of asking and telling, and the trials that it was for.
    search_us: f64,
    searched: f64,
}

impl<'a> Plan<'a> {
    fn new(args: &'a TuneArgs, seed: u64) -> Result<Self> {
        let noise = args.noise;
        ensure!((0.0..=1.0).contains(&noise), "--noise {noise}: give a spread from 0 (exact) to 1");
        let cells = match args.collective.zip(args.bytes) {
            Some((collective, Bytes(bytes))) => {
                ensure!(bytes > 0, "--bytes 0: there is nothing to send");
                vec![(collective, bytes)]
            }
            None => Collective::TUNED.into_iter().flat_map(all_sizes).collect(),
        };
        let cluster = machine::load(&args.machine)?;
        let options = CommOptions { ranks_per_node: args.ranks_per_node, ..CommOptions::default() };
        let constants = ConstantsFile::load(&args.constants.constants)?;
        let world = match args.world {
            Some(seed) => World::draw(&constants, seed),
            None => World::nominal(&constants),
        };
        let simulator = Simulator::new(&cluster, args.nodes, &options, &world)?;
        let asking = Asking::new(&cluster, args.nodes, &options, Shown::NOTHING)?;
        let about = About {
            simulated: true,
            method: args.method,
            space: args.space,
            cluster: cluster.name.clone(),
            nodes: args.nodes,
            ranks: simulator.communicator().ranks(),
            world: args.world,
            constants: args.constants.constants.clone(),
            noise,
            budget: task::budget(args.method, args.budget),
        };
        let saved = args.out.as_deref().map(|path| Saved::new(path, args.space)).transpose()?;
        let earlier = match &saved {
            Some(saved) if args.resume => saved.earlier(&about, seed)?,
            _ => Vec::new(),
        };
        Ok(Plan { args, about, asking, simulator, cells, saved, earlier })
    }

    /// Tunes every call that an earlier run has not; Ctrl-C ends it early with what there is.
    fn search(&self, session: &Session) -> Result<(Found, Option<Interrupted>)> {
        let progress = session.progress("tune", self.cells.len() as u64);
        let mut found = Found::default();
        for (number, &(collective, bytes)) in self.cells.iter().enumerate() {
            let known = self.earlier.iter().find(|call| (call.collective, call.bytes) == (collective, bytes));
            if let Some(known) = known {
                found.calls.push(known.clone());
            } else {
                let task = Task::new(self.args.space, &self.asking, &self.simulator, collective, bytes)?;
                if let Some(path) = &self.args.surface {
                    save::surface(path, &self.about, &task)?;
                }
                let seed = Random::of(session.seed, number as u64).bits();
                self.tune(&task, seed, &mut found, &progress);
            }
            if let Err(interrupted) = progress.advance(1) {
                return Ok((found, Some(interrupted)));
            }
        }
        Ok((found, None))
    }

    /// Tunes one call, as far as Ctrl-C lets it.
    fn tune(&self, task: &Task, seed: u64, found: &mut Found, progress: &Progress) {
        let mut search = task.search(self.args.method, seed);
        let mut noise = Random::of(seed, 1);
        let budget = self.about.budget.map_or(f64::INFINITY, f64::from);
        let mut complete = true;
        let mut clock = Instant::now();
        while let Some(trial) = search.ask().filter(|trial| search.spent() + trial.resource <= budget) {
            found.search_us += micros(&clock);
            let spread = self.about.noise / (CALLS * trial.resource).sqrt();
            let measured = task.micros(&trial.point) * exp(spread * noise.normal());
            let go_on = progress.advance(0);
            clock = Instant::now();
            search.tell(measured);
            if go_on.is_err() {
                complete = false;
                break;
            }
        }
        found.search_us += micros(&clock);
        found.searched += search.spent();
        let Some(best) = search.best() else { return };
        let (best_us, start_us) = (task.micros(&best.point), task.micros(&task.start));
        let grid_best_us = task.surface.iter().copied().fold(f64::INFINITY, f64::min);
        found.calls.push(Tuned {
            collective: task.collective,
            bytes: task.bytes,
            complete,
            trials: search.spent(),
            grid_trials: task.space.points(),
            best: task.describe(&best.point),
            best_us,
            grid_best_us,
            start_us,
            quality: grid_best_us / best_us,
        });
        progress.remark(&format!("{} {} {:.2}x", task.collective, Bytes(task.bytes), start_us / best_us));
    }
}

/// A collective with every size that is tuned.
fn all_sizes(collective: Collective) -> impl Iterator<Item = (Collective, u64)> {
    headroom::sizes().into_iter().map(move |bytes| (collective, bytes))
}

fn micros(since: &Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}
