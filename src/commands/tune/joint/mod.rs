//! `tune --joint`: sketch, synthesizer, chunks and backend of schedules together.

mod report;

use anyhow::{Result, bail, ensure};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::random::Random;
use dynamiccl_policies::search::mraco::{Mraco, Schedule};
use dynamiccl_policies::search::{Dimension, Found, Point, Search, Sequence, Space};
use dynamiccl_spec::Collective;
use dynamiccl_spec::math::exp;
use dynamiccl_synth::Machine;
use dynamiccl_synth::joint::table::Table;
use dynamiccl_synth::joint::{DIMENSIONS, ORDERED, SIZES, START, Setting, Task};

use super::task::budget;
use super::{Advance, cells};
use crate::args::{Method, TuneArgs};
use crate::atomic::OutFile;
use crate::commands::synth::synth_machine;
use crate::exit::Ending;
use crate::session::Session;
use report::{Report, Tuned};

/// Settings of a call that go into a table: a job picks among them by what it measures.
const KEPT: usize = 3;

/// Makes the plan and carries it out.
pub fn run(args: &TuneArgs, session: &Session) -> Result<Ending> {
    let mut plan = Plan::new(args)?;
    let progress = session.progress("tune", plan.cells.len() as u64);
    let calls = plan.tune_all(session.seed, &|calls| progress.advance(calls))?;
    drop(progress);
    let entries = calls.iter().flat_map(Tuned::entries).collect();
    let table = Table::new(&plan.machine, entries);
    if let Some(out) = plan.out.take() {
        out.finish(table.to_json().as_bytes())?;
    }
    session.report("tune", &Report::new(args.method, &plan.machine, &table, calls))?;
    Ok(Ending::Done)
}

/// What is tuned.
struct Plan<'a> {
    args: &'a TuneArgs,
    machine: Machine,
    cells: Vec<(Collective, u64)>,
    out: Option<OutFile>,
}

impl<'a> Plan<'a> {
    fn new(args: &'a TuneArgs) -> Result<Self> {
        let (noise, method) = (args.noise, args.method);
        ensure!((0.0..=1.0).contains(&noise), "--noise {noise}: give a spread from 0 (exact) to 1");
        if !matches!(method, Method::Mraco | Method::Grid | Method::Random) {
            bail!("--joint with this method: give --method mraco, grid or random");
        }
        ensure!(!args.resume && args.surface.is_none(), "--joint has neither --resume nor --surface");
        ensure!(args.world.is_none() && args.space.is_none(), "--joint has neither --world nor --space");
        ensure!(
            args.constants.constants == ConstantsFile::USUAL,
            "--joint has no --constants: schedules are timed by the synthesizer's own model; leave it out"
        );
        let json = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "json");
        if let Some(path) = args.out.as_ref().filter(|path| !json(path)) {
            bail!("--out {}: the lookup table of --joint is a .json file", path.display());
        }
        let machine = synth_machine(&args.machine, None, args.nodes, args.ranks_per_node)?;
        let out = args.out.as_deref().map(OutFile::create).transpose()?;
        Ok(Plan { args, machine, cells: cells(args)?, out })
    }

    fn tune_all(&self, seed: u64, advance: &Advance<'_>) -> Result<Vec<Tuned>> {
        let mut calls = Vec::with_capacity(self.cells.len());
        for (&(collective, bytes), number) in self.cells.iter().zip(0..) {
            let task = Task::new(&self.machine, collective, bytes);
            calls.push(self.tune(&task, Random::of(seed, number).bits(), advance)?);
            advance(1)?;
        }
        Ok(calls)
    }

    /// Tunes one call by noisy trials, which alone say what is kept; how good the best of it is, true times say.
    fn tune(&self, task: &Task<'_>, seed: u64, advance: &Advance<'_>) -> Result<Tuned> {
        let space = space();
        let calls = Schedule::of(space.points()).calls();
        let mut search = search(space, self.args.method, seed);
        let mut noise = Random::of(seed, 1);
        let budget = budget(self.args.method, self.args.budget).map_or(f64::INFINITY, f64::from);
        while let Some(trial) = search.ask_within(budget) {
            let spread = self.args.noise / (calls * trial.resource).sqrt();
            search.tell(task.micros(&setting(&trial.point)) * exp(spread * noise.normal()));
            advance(0)?;
        }
        let believed = |found: &Found| (setting(&found.point), found.micros);
        let kept: Vec<(Setting, f64)> = search.ranked(KEPT).iter().map(believed).collect();
        ensure!(!kept.is_empty(), "--budget leaves no trial that runs: give more");
        let [best_us, start_us] = [kept[0].0, Setting::start()].map(|setting| task.micros(&setting));
        Ok(Tuned::new(task.collective, task.bytes, search.spent(), [best_us, start_us], kept))
    }
}

fn space() -> Space {
    let dimension =
        |d: usize| if ORDERED[d] { Dimension::ordered(SIZES[d]) } else { Dimension::named(SIZES[d]) };
    Space::new(&std::array::from_fn::<_, DIMENSIONS, _>(dimension))
}

fn search(space: Space, method: Method, seed: u64) -> Box<dyn Search> {
    let start = Point::at(START.map(|value| value as u8));
    match method {
        Method::Grid => Box::new(Sequence::grid(space, start)),
        Method::Random => Box::new(Sequence::random(space, start, seed)),
        _ => {
            let schedule = Schedule::of(space.points());
            Box::new(Mraco::new(space, start, &[1.0; SIZES[0]], schedule, seed))
        }
    }
}

fn setting(point: &Point) -> Setting {
    Setting::at(std::array::from_fn(|d| point.value(d)))
}
