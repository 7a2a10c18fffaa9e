//! One call to tune: the settings that it has, and the true time of each.

use anyhow::{Context, Result};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::nccl::Realised;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::tuccl::RingSetting;
use dynamiccl_policies::search::mraco::Schedule;
use dynamiccl_policies::search::{Bandit, Coordinate, Mraco, Point, Rule, Search, Sequence, Space, Tpe};
use dynamiccl_policies::settings::{OwnSettings, TucclSetting, tuccl};
use dynamiccl_spec::math::ln;
use dynamiccl_spec::{Collective, Head, Knobs};

use super::report::{Best, Tuned};
use crate::args::Method;

/// Trials of methods that never end by themselves.
pub const ENDLESS: u32 = 100;

/// One call and its settings.
pub struct Task {
    pub collective: Collective,
    pub bytes: u64,
    pub space: Space,
    /// Where a search begins: NCCL's own setting, or MSCCL's default.
    pub start: Point,
    /// True µs by position in the space.
    pub surface: Vec<f64>,
    widths: Vec<f64>,
    arms: Vec<Point>,
    meaning: Meaning,
}

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Searched {
    /// Knobs of ours, with the chunk or without it.
    Own { chunks: bool },
    /// TuCCL's settings.
    Tuccl,
}

/// What the points are.
enum Meaning {
    Own(Vec<(Knobs, Realised)>),
    Tuccl,
}

impl Task {
    /// The settings of a call.
    pub fn new(
        searched: Searched,
        asking: &Asking,
        simulator: &Simulator,
        collective: Collective,
        bytes: u64,
    ) -> Result<Self> {
        match searched {
            Searched::Own { chunks } => Task::own(chunks, asking, simulator, collective, bytes),
            Searched::Tuccl => Ok(Task::tuccl(simulator, collective, bytes)),
        }
    }

    fn own(
        chunks: bool,
        asking: &Asking,
        simulator: &Simulator,
        collective: Collective,
        bytes: u64,
    ) -> Result<Self> {
        let asked = asking.call(collective, bytes, 1);
        let own = asked.gated.own.with_context(|| format!("NCCL has no algorithm for {collective} here"))?;
        let mask = if chunks { asked.gated.mask } else { asked.gated.mask.only(Head::Chunk, 0) };
        let settings = OwnSettings::new(&mask, own);
        let space = settings.space();
        let known = |point: &Point| {
            let knobs = settings.knobs(point);
            let realised = asking.realise(&asked, &knobs);
            realised.map(|realised| (knobs, realised)).with_context(|| format!("NCCL cannot run {knobs}"))
        };
        let points: Vec<_> =
            (0..space.points()).map(|index| known(&space.point(index))).collect::<Result<_>>()?;
        Ok(Task {
            collective,
            bytes,
            start: settings.own(),
            surface: points.iter().map(|(_, run)| simulator.micros(collective, bytes, run)).collect(),
            widths: settings.widths(),
            arms: settings.arms(&asked.call.table),
            meaning: Meaning::Own(points),
            space,
        })
    }

    fn tuccl(simulator: &Simulator, collective: Collective, bytes: u64) -> Self {
        let space = tuccl::space();
        let micros = |index| simulator.ring_micros(collective, bytes, &ring(&space.point(index)));
        Task {
            collective,
            bytes,
            start: tuccl::DEFAULT,
            surface: (0..space.points()).map(micros).collect(),
            widths: tuccl::widths(),
            arms: tuccl::arms(),
            meaning: Meaning::Tuccl,
            space,
        }
    }

    /// A search of this call; none by a method that makes no trial.
    pub fn search(&self, method: Method, seed: u64) -> Option<Box<dyn Search>> {
        let (space, start) = (self.space.clone(), self.start);
        let bandit = |rule| Box::new(Bandit::new(self.arms.iter().copied(), rule, seed));
        Some(match method {
            Method::Grid => Box::new(Sequence::grid(space, start)),
            Method::Random => Box::new(Sequence::random(space, start, seed)),
            Method::Mraco => {
                let schedule = Schedule::of(space.points());
                Box::new(Mraco::new(space, start, &self.widths, schedule, seed))
            }
            Method::Tpe => Box::new(Tpe::new(space, start, seed)),
            Method::Coordinate => Box::new(Coordinate::new(space, start)),
            Method::Bandit => bandit(Rule::Ucb),
            Method::Epsilon => bandit(Rule::EPSILON),
            Method::Bayes => return None,
        })
    }

    /// The point that is best on average over the same call elsewhere.
    pub fn best_over(&self, elsewhere: &[Task]) -> Point {
        let log = |index: usize| elsewhere.iter().map(|task| ln(task.surface[index])).sum::<f64>();
        let logs = (0..self.space.points()).map(|index| (index, log(index)));
        let best = logs.reduce(|best, next| if next.1 < best.1 { next } else { best });
        best.map_or(self.start, |(index, _)| self.space.point(index))
    }

    /// The true time of a point.
    pub fn micros(&self, point: &Point) -> f64 {
        self.surface[self.space.index(point)]
    }

    /// What was found with this many trials, judged by true times.
    pub fn tuned(&self, best: &Point, trials: f64, complete: bool) -> Tuned {
        let (best_us, start_us) = (self.micros(best), self.micros(&self.start));
        let grid_best_us = self.surface.iter().copied().fold(f64::INFINITY, f64::min);
        Tuned {
            collective: self.collective,
            bytes: self.bytes,
            complete,
            trials,
            grid_trials: self.space.points(),
            best: self.describe(best),
            best_us,
            grid_best_us,
            start_us,
            quality: grid_best_us / best_us,
        }
    }

    /// What a point is when it runs.
    pub fn describe(&self, point: &Point) -> Best {
        match &self.meaning {
            Meaning::Own(points) => {
                let (knobs, realised) = points[self.space.index(point)];
                Best::own(&knobs, &realised)
            }
            Meaning::Tuccl => Best::ring(&ring(point)),
        }
    }
}

/// Trials that a method may make; none where it ends by itself.
pub fn budget(method: Method, given: Option<u32>) -> Option<u32> {
    let endless = matches!(method, Method::Random | Method::Tpe | Method::Bandit | Method::Epsilon);
    given.or(endless.then_some(ENDLESS))
}

fn ring(point: &Point) -> RingSetting {
    let TucclSetting { protocol, channels, threads, buffer } = tuccl::setting(point);
    RingSetting { protocol, channels, threads, buffer }
}
