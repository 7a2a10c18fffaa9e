//! Controllers against each other on the same traffic: cadences and triggers at their best, a learned policy, and
//! the least that any plan could have cost.
//!
//! What can be tuned is tuned on traffic of its own; everybody is judged on traffic that nobody has seen.
//!
//! Drawing traffic and knowing all of it take the time, so that their collectives are counted ([`Comparison::steps`]);
//! who tunes or judges says 0 of them, which is only a moment to stop at.

use serde::Serialize;

use super::control::{Cadence, Clairvoyant, Controller, Threshold};
use super::course::Passed;
use super::traffic::Traffic;
use super::{Costs, Course, Setting, WanError};
use crate::statistics::deviation;
use crate::threads::try_each;

/// What is compared on.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    /// What stays the same.
    pub setting: &'a Setting,
    /// What changes cost.
    pub costs: Costs,
    /// Correlation of the traffic.
    pub rho: f64,
    /// Collectives after which links are seen.
    pub lag: usize,
    /// Traces to judge on, and as many of the same length to tune on.
    pub traces: usize,
    /// Collectives of each.
    pub collectives: usize,
    /// Seed of the traffic.
    pub seed: u64,
    /// Threads to work with; they change nothing.
    pub threads: usize,
}

/// The traffic of a comparison.
#[derive(Debug, Clone)]
pub struct Courses {
    /// What is tuned on.
    pub training: Vec<Course>,
    /// What is judged on.
    pub unseen: Vec<Course>,
}

/// What somebody came to over all traces, per collective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Mean ms, costs included.
    pub mean_ms: f64,
    /// Standard deviation of that over the traces; none of one trace.
    pub std_ms: Option<f64>,
    /// Mean ms without costs; none of the clairvoyant.
    pub comm_ms: Option<f64>,
    /// Share of collectives before which the ring was rebuilt; none of the clairvoyant.
    pub rebuilds: Option<f64>,
    /// Share of collectives before which a route was changed; none of the clairvoyant.
    pub reroutes: Option<f64>,
    /// Mean ms of each trace, costs included.
    pub traces_ms: Vec<f64>,
}

/// Streams of a seed: what is tuned on and what is judged on never meet.
const TRAINING: u64 = 1 << 32;
const UNSEEN: u64 = 1 << 33;

impl Comparison<'_> {
    /// Collectives that are told of in all.
    pub fn steps(&self) -> u64 {
        3 * self.traces as u64 * self.collectives as u64
    }

    /// Draws the traffic; `step` is told of collectives and stops with its error.
    pub fn courses<X: Send>(&self, step: impl Fn(u64) -> Result<(), X> + Sync) -> Result<Courses, X> {
        let streams: Vec<u64> = [TRAINING, UNSEEN]
            .into_iter()
            .flat_map(|first| (0..self.traces as u64).map(move |number| first + number))
            .collect();
        let draw = |&stream: &u64| {
            let traffic = Traffic::new(self.setting, self.rho, self.seed, stream);
            Course::draw(self.setting, traffic, self.collectives, &step)
        };
        let mut training = try_each(self.threads, &streams, draw)?;
        let unseen = training.split_off(self.traces);
        Ok(Courses { training, unseen })
    }

    /// The best of these on traffic to tune on.
    pub fn best<C: Controller + Clone, X>(
        &self,
        courses: &Courses,
        candidates: impl Iterator<Item = C>,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<Option<C>, X> {
        let mut best: Option<(f64, C)> = None;
        for candidate in candidates {
            let mut tried = candidate.clone();
            let ms = self.run(&courses.training, &mut tried, &step)?.mean_ms;
            if best.as_ref().is_none_or(|(least, _)| ms < *least) {
                best = Some((ms, candidate));
            }
        }
        Ok(best.map(|(_, candidate)| candidate))
    }

    /// The best cadence on traffic to tune on.
    pub fn best_cadence<X>(
        &self,
        courses: &Courses,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<Option<Cadence>, X> {
        self.best(courses, Cadence::candidates(), step)
    }

    /// The best trigger on traffic to tune on.
    pub fn best_threshold<X>(
        &self,
        courses: &Courses,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<Option<Threshold>, X> {
        self.best(courses, Threshold::candidates(self.setting), step)
    }

    /// What somebody comes to on traffic that nobody has seen.
    pub fn judge<X>(
        &self,
        courses: &Courses,
        controller: &mut dyn Controller,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<Figures, X> {
        self.run(&courses.unseen, controller, step)
    }

    /// The least that any plan could have cost there; `step` is told of collectives and stops with its error.
    /// An error of its own where there are too many rings to know.
    pub fn clairvoyant<X: Send>(
        &self,
        courses: &Courses,
        step: impl Fn(u64) -> Result<(), X> + Sync,
    ) -> Result<Result<Figures, X>, WanError> {
        let known = Clairvoyant::new(self.setting)?;
        let least =
            |course: &Course| known.clone().mean_ms(self.setting, course.samples(), self.costs, &step);
        let all = try_each(self.threads, &courses.unseen, least);
        Ok(all.map(|traces_ms| Figures {
            mean_ms: mean(&traces_ms),
            std_ms: deviation(&traces_ms),
            comm_ms: None,
            rebuilds: None,
            reroutes: None,
            traces_ms,
        }))
    }

    fn run<X>(
        &self,
        courses: &[Course],
        controller: &mut dyn Controller,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<Figures, X> {
        let run = |course: &Course| course.run(self.setting, self.costs, self.lag, controller, || step(0));
        let passed: Vec<Passed> = courses.iter().map(run).collect::<Result<_, X>>()?;
        let all = |of: fn(&Passed) -> f64| passed.iter().map(of).collect::<Vec<f64>>();
        let traces_ms = all(|passed| passed.mean_ms);
        Ok(Figures {
            mean_ms: mean(&traces_ms),
            std_ms: deviation(&traces_ms),
            comm_ms: Some(mean(&all(|passed| passed.comm_ms))),
            rebuilds: Some(mean(&all(|passed| passed.rebuilds))),
            reroutes: Some(mean(&all(|passed| passed.reroutes))),
            traces_ms,
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
