//! One call to tune: the settings that it has, and the true time of each.

use anyhow::{Context, Result};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::nccl::Realised;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::tuccl::RingSetting;
use dynamiccl_policies::search::mraco::Schedule;
use dynamiccl_policies::search::{Bandit, Coordinate, Mraco, Point, Rule, Search, Sequence, Space, Tpe};
use dynamiccl_policies::settings::{OwnSettings, TucclSetting, tuccl};
use dynamiccl_spec::{Collective, Knobs};

use super::report::Best;
use crate::args::{Method, SpaceKind};

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

/// What the points are.
enum Meaning {
    Own(Vec<(Knobs, Realised)>),
    Tuccl,
}

impl Task {
    /// The settings of a call.
    pub fn new(
        kind: SpaceKind,
        asking: &Asking,
        simulator: &Simulator,
        collective: Collective,
        bytes: u64,
    ) -> Result<Self> {
        match kind {
            SpaceKind::Own => Task::own(asking, simulator, collective, bytes),
            SpaceKind::Tuccl => Ok(Task::tuccl(simulator, collective, bytes)),
        }
    }

    fn own(asking: &Asking, simulator: &Simulator, collective: Collective, bytes: u64) -> Result<Self> {
        let asked = asking.call(collective, bytes, 1);
        let own = asked.gated.own.with_context(|| format!("NCCL has no algorithm for {collective} here"))?;
        let settings = OwnSettings::new(&asked.gated.mask, own);
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

    /// A search of this call.
    pub fn search(&self, method: Method, seed: u64) -> Box<dyn Search> {
        let (space, start) = (self.space.clone(), self.start);
        match method {
            Method::Grid => Box::new(Sequence::grid(space, start)),
            Method::Random => Box::new(Sequence::random(space, start, seed)),
            Method::Mraco => Box::new(Mraco::new(space, start, &self.widths, Schedule::FULL, seed)),
            Method::Tpe => Box::new(Tpe::new(space, start, seed)),
            Method::Coordinate => Box::new(Coordinate::new(space, start)),
            Method::Bandit => Box::new(Bandit::new(self.arms.iter().copied(), Rule::Ucb, seed)),
            Method::Epsilon => Box::new(Bandit::new(
                self.arms.iter().copied(),
                Rule::Epsilon { start: 0.3, halves: 50.0 },
                seed,
            )),
        }
    }

    /// The true time of a point.
    pub fn micros(&self, point: &Point) -> f64 {
        self.surface[self.space.index(point)]
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
