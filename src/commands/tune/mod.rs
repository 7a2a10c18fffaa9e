//! `tune`: searches the settings of a call, or of all calls of a machine, by noisy trials, and says how
//! good what it finds is by true times.

mod joint;
mod report;
mod save;
mod task;
mod text;

use std::time::Instant;

use anyhow::{Result, ensure};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::CommOptions;
use dynamiccl_env::gym::seed_of;
use dynamiccl_env::headroom;
use dynamiccl_env::job::Shown;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_policies::random::Random;
use dynamiccl_policies::search::Point;
use dynamiccl_spec::math::exp;
use dynamiccl_spec::{Bytes, Collective};

use super::machine;
use crate::args::{Method, SpaceKind, TuneArgs};
use crate::atomic::Apart;
use crate::exit::Ending;
use crate::interrupt::Interrupted;
use crate::session::Session;
use report::{About, Report, Tuned};
use save::{Contents, Saved};
use task::{Searched, Task};

/// Calls of a full measurement; a trial with less resource is the mean of fewer.
const CALLS: f64 = 27.0;

/// Worlds over which a setting is expected to be good.
const WORLDS: usize = 24;

/// Counts calls as done; an error once Ctrl-C was pressed.
type Advance<'a> = dyn Fn(u64) -> Result<(), Interrupted> + 'a;

/// Makes the plan and carries it out.
pub fn run(args: &TuneArgs, session: &Session) -> Result<Ending> {
    apart(args)?;
    if args.joint {
        return joint::run(args, session);
    }
    let plan = Plan::new(args, session.seed)?;
    let progress = session.progress("tune", plan.cells.len() as u64);
    let (found, interrupted) = plan.search(session.seed, &|calls| progress.advance(calls))?;
    drop(progress);
    if let Some(interrupted) = interrupted {
        if let Some(saved) = &plan.saved {
            let kept = plan.with_earlier(&found.calls);
            let left =
                plan.cells.iter().filter(|cell| !kept.iter().any(|call| call.complete && call.is_of(**cell)));
            saved.write_part(&plan.about, session, &kept, left.count())?;
        }
        return Err(interrupted.into());
    }
    if let Some(saved) = &plan.saved {
        saved.write(&plan.about, session.seed, &plan.with_earlier(&found.calls))?;
    }
    let report = Report::new(plan.about, found.calls, found.search_us, found.searched);
    session.report("tune", &report)?;
    Ok(Ending::Done)
}

/// Makes sure that no file would be written over another, or over the machine.
fn apart(args: &TuneArgs) -> Result<()> {
    Apart::default()
        .reads("--cluster", &args.machine.cluster)
        .reads("--topo", &args.machine.topo)
        .reads("--constants", [&args.constants.constants])
        .writes("--out", &args.out)?
        .writes("--surface", &args.surface)?;
    Ok(())
}

/// What is tuned.
struct Plan<'a> {
    args: &'a TuneArgs,
    about: About,
    asking: Asking,
    simulator: Simulator,
    cells: Vec<(Collective, u64)>,
    /// The same machine in worlds that are not this one, for those who only expect.
    elsewhere: Vec<Simulator>,
    saved: Option<Saved>,
    /// What an earlier run has found.
    earlier: Vec<Tuned>,
}

/// What has been found.
#[derive(Default)]
struct Found {
    calls: Vec<Tuned>,
    /// µs of making searches, asking and telling, and the trials that it was for.
    search_us: f64,
    searched: f64,
}

impl<'a> Plan<'a> {
    fn new(args: &'a TuneArgs, seed: u64) -> Result<Self> {
        let noise = args.noise;
        ensure!((0.0..=1.0).contains(&noise), "--noise {noise}: give a spread from 0 (exact) to 1");
        let cells = cells(args)?;
        let cluster = machine::load(&args.machine)?;
        let options = CommOptions { ranks_per_node: args.ranks_per_node, ..CommOptions::default() };
        let constants = ConstantsFile::load(&args.constants.constants)?;
        let world = match args.world {
            Some(seed) => World::draw(&constants, seed),
            None => World::nominal(&constants),
        };
        let simulator = Simulator::new(&cluster, args.nodes, &options, &world)?;
        let asking = Asking::new(&cluster, args.nodes, &options, Shown::NOTHING)?;
        let expects = args.method == Method::Bayes;
        let elsewhere = (0..if expects { WORLDS } else { 0 }).map(|number| {
            let world = World::draw(&constants, seed_of(seed, number));
            Simulator::new(&cluster, args.nodes, &options, &world)
        });
        let elsewhere = elsewhere.collect::<Result<_, _>>()?;
        let about = About {
            simulated: true,
            method: args.method,
            space: args.searched(),
            cluster: cluster.name.clone(),
            nodes: args.nodes,
            ranks: simulator.communicator().ranks(),
            world: args.world,
            constants: args.constants.constants.clone(),
            noise,
            budget: task::budget(args.method, args.budget),
        };
        let contents = Contents::of(&cluster, &constants)?;
        let saved =
            args.out.as_deref().map(|path| Saved::new(path, args.searched(), contents)).transpose()?;
        let earlier = match &saved {
            Some(saved) if args.resume => saved.earlier(&about, seed)?,
            _ => Vec::new(),
        };
        Ok(Plan { args, about, asking, simulator, cells, elsewhere, saved, earlier })
    }

    /// NVIDIA's table has no chunks, so what goes there is searched without them.
    fn searched(&self) -> Searched {
        let chunks = !self.saved.as_ref().is_some_and(Saved::is_table);
        match self.about.space {
            SpaceKind::Own => Searched::Own { chunks },
            SpaceKind::Tuccl => Searched::Tuccl,
        }
    }

    /// Tunes every call that an earlier run has not; Ctrl-C ends it early with what there is.
    fn search(&self, seed: u64, advance: &Advance<'_>) -> Result<(Found, Option<Interrupted>)> {
        let mut found = Found::default();
        for (number, &(collective, bytes)) in self.cells.iter().enumerate() {
            let known = self.earlier.iter().find(|call| call.is_of((collective, bytes)));
            let task = || Task::new(self.searched(), &self.asking, &self.simulator, collective, bytes);
            // Also of a call that is found: nobody has kept its surface.
            if let Some(path) = &self.args.surface {
                save::surface(path, &self.about, &task()?)?;
            }
            if let Some(known) = known {
                found.calls.push(known.clone());
            } else {
                let task = task()?;
                let seed = Random::of(seed, number as u64).bits();
                if self.elsewhere.is_empty() {
                    self.tune(&task, seed, &mut found, advance);
                } else {
                    found.calls.push(task.tuned(&self.expected(&task)?, 0.0, true));
                }
            }
            if let Err(interrupted) = advance(1) {
                return Ok((found, Some(interrupted)));
            }
        }
        Ok((found, None))
    }

    /// What was found, and what an earlier run has found of other calls: these words may ask for fewer.
    fn with_earlier(&self, found: &[Tuned]) -> Vec<Tuned> {
        let is_found = |call: &Tuned| found.iter().any(|one| one.is_of((call.collective, call.bytes)));
        let others = self.earlier.iter().filter(|call| !is_found(call));
        found.iter().chain(others).cloned().collect()
    }

    /// The setting of a call that is best on average elsewhere.
    fn expected(&self, task: &Task) -> Result<Point> {
        let of = |simulator| Task::new(self.searched(), &self.asking, simulator, task.collective, task.bytes);
        Ok(task.best_over(&self.elsewhere.iter().map(of).collect::<Result<Vec<_>>>()?))
    }

    /// Tunes one call, as far as Ctrl-C lets it.
    fn tune(&self, task: &Task, seed: u64, found: &mut Found, advance: &Advance<'_>) {
        // Making the search is part of searching.
        let mut clock = Instant::now();
        let Some(mut search) = task.search(self.args.method, seed) else { return };
        let mut noise = Random::of(seed, 1);
        let budget = self.about.budget.map_or(f64::INFINITY, f64::from);
        let mut complete = true;
        while let Some(trial) = search.ask_within(budget) {
            found.search_us += micros(&clock);
            let spread = self.about.noise / (CALLS * trial.resource).sqrt();
            let measured = task.micros(&trial.point) * exp(spread * noise.normal());
            let go_on = advance(0);
            clock = Instant::now();
            search.tell(measured);
            if go_on.is_err() {
                complete = false;
                break;
            }
        }
        found.search_us += micros(&clock);
        found.searched += search.spent();
        if let Some(best) = search.best() {
            found.calls.push(task.tuned(&best.point, search.spent(), complete));
        }
    }
}

/// The calls that are tuned.
fn cells(args: &TuneArgs) -> Result<Vec<(Collective, u64)>> {
    let sizes = match args.bytes {
        Some(Bytes(bytes)) => vec![bytes],
        None => headroom::sizes(),
    };
    ensure!(!sizes.contains(&0), "--bytes 0: there is nothing to send");
    let collectives = args.collective.map_or(Collective::TUNED.to_vec(), |one| vec![one]);
    let with_sizes = |collective| sizes.iter().map(move |&bytes| (collective, bytes));
    Ok(collectives.into_iter().flat_map(with_sizes).collect())
}

fn micros(since: &Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn ctrl_c_keeps_what_was_found_and_says_what_is_not_complete() {
        let words = "dynamiccl tune --method tpe --cluster dgx_a100 --nodes 1 --budget 5";
        let args = Args::try_parse_from(words.split_whitespace()).unwrap();
        let Command::Tune(args) = &args.command else { panic!("{words}") };
        let plan = Plan::new(args, 1).unwrap();
        // Six looks at the clock for each call: the eighth is in the second call.
        let looks = Cell::new(0);
        let advance = |_| {
            looks.set(looks.get() + 1);
            if looks.get() >= 8 { Err(Interrupted) } else { Ok(()) }
        };
        let (found, interrupted) = plan.search(1, &advance).unwrap();
        assert_eq!(interrupted, Some(Interrupted));
        let ends: Vec<_> = found.calls.iter().map(|call| (call.complete, call.trials)).collect();
        assert_eq!(ends, [(true, 5.0), (false, 2.0)]);
    }
}
