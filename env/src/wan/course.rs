//! A stretch of traffic that several controllers are judged on: drawn once, with the best arrangement of every
//! moment, so that whoever is asked meets the same.

use super::arrangement::Work;
use super::control::{Controller, Move, View};
use super::traffic::{Sample, Traffic};
use super::trend::Trend;
use super::{Arrangement, Costs, Operation, Search, Setting};

/// Collectives from one word about how far work is to the next.
const BATCH: usize = 100;

/// What to tell of once so many collectives of all are done: a batch of them, or what was left of one.
pub(super) fn batch(done: usize, all: usize) -> Option<u64> {
    let rest = done % BATCH;
    match rest {
        0 => Some(BATCH as u64),
        _ => (done == all).then_some(rest as u64),
    }
}

/// A stretch of traffic.
#[derive(Debug, Clone)]
pub struct Course {
    samples: Vec<Sample>,
    best: Vec<(Arrangement, f64)>,
    correlation: Vec<f64>,
}

/// What a controller came to on a course, per collective.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Passed {
    /// ms, costs included.
    pub mean_ms: f64,
    /// ms without costs.
    pub comm_ms: f64,
    /// Share of collectives before which the ring was rebuilt.
    pub rebuilds: f64,
    /// Share of collectives before which a route was changed.
    pub reroutes: f64,
}

impl Course {
    /// Draws so many collectives; `step` is told of them as they come and stops with its error.
    pub fn draw<X>(
        setting: &Setting,
        mut traffic: Traffic,
        collectives: usize,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<Self, X> {
        let (mut search, mut trend) = (Search::new(&setting.network), Trend::default());
        let mut course = Course { samples: Vec::new(), best: Vec::new(), correlation: Vec::new() };
        for at in 0..collectives {
            let sample = traffic.next_sample();
            trend.see(setting, &sample);
            course.best.push(search.widest_routes(setting, &sample));
            course.correlation.push(trend.correlation());
            course.samples.push(sample);
            batch(at + 1, collectives).map_or(Ok(()), &step)?;
        }
        Ok(course)
    }

    /// The links during each collective.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Runs a job with somebody who decides, and sees links after so many collectives; `step` hears now and then that
    /// it goes on and stops it with its error.
    pub fn run<X>(
        &self,
        setting: &Setting,
        costs: Costs,
        lag: usize,
        controller: &mut dyn Controller,
        step: impl Fn() -> Result<(), X>,
    ) -> Result<Passed, X> {
        let (mut operation, mut work) = (Operation::new(setting, costs), Work::default());
        let mut passed = Passed::default();
        controller.begin();
        for (at, now) in self.samples.iter().enumerate() {
            let seen = at.saturating_sub(lag);
            let (best, best_ms) = &self.best[seen];
            let prospect = operation.look(setting, &self.samples[seen], (best, *best_ms), &mut work);
            let moved = controller.choose(&mut View {
                setting,
                operation: &operation,
                prospect: &prospect,
                seen: &self.samples[seen],
                best,
                correlation: self.correlation[seen],
                lag,
                work: &mut work,
            });
            let done = operation.act(setting, moved, &prospect, best, now, &mut work);
            passed.mean_ms += done.ms + done.cost_ms;
            passed.comm_ms += done.ms;
            passed.rebuilds += f64::from(u8::from(moved == Move::Rebuild));
            passed.reroutes += f64::from(u8::from(moved == Move::Reroute && prospect.reroutes));
            batch(at + 1, self.samples.len()).map_or(Ok(()), |_| step())?;
        }
        Ok(passed.per(self.samples.len()))
    }
}

impl Passed {
    fn per(self, collectives: usize) -> Self {
        let each = 1.0 / collectives.max(1) as f64;
        Passed {
            mean_ms: self.mean_ms * each,
            comm_ms: self.comm_ms * each,
            rebuilds: self.rebuilds * each,
            reroutes: self.reroutes * each,
        }
    }
}
