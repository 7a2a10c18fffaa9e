//! A running job in traffic that goes on.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::WanInfo;
use super::features;
use crate::gym::Observation;
use crate::wan::arrangement::Work;
use crate::wan::control::{Move, View};
use crate::wan::curriculum::{Lesson, Reference};
use crate::wan::traffic::{Sample, Traffic};
use crate::wan::trend::Trend;
use crate::wan::{Arrangement, Operation, Prospect, Search};

/// Collectives that a mean time is taken from.
const SURVEYED: u32 = 256;
/// Collectives over which a rebuilding is thought to be spread where jobs of all costs are to count alike.
const SPREAD: f64 = 10.0;

/// A running job.
#[derive(Debug)]
pub struct Episode {
    lesson: Lesson,
    traffic: Traffic,
    /// The links with their best arrangement, as seen first and as they are last.
    links: VecDeque<(Sample, (Arrangement, f64))>,
    search: Search,
    trend: Trend,
    operation: Operation,
    prospect: Prospect,
    usual: Arrangement,
    /// ms that rewards are relative to; none where it is that of the same links.
    reference_ms: Option<f64>,
    work: Work,
}

impl Episode {
    /// A job whose traffic comes from this generator.
    pub fn new(lesson: Lesson, rng: &mut ChaCha8Rng) -> Self {
        let setting = &lesson.setting;
        let (usual, mut work) = (Arrangement::usual(&setting.network), Work::default());
        let mut survey = Traffic::new(setting, 0.0, rng.random(), 0);
        let reference_ms = (lesson.reference != Reference::Sample).then(|| {
            let times = (0..SURVEYED).map(|_| work.time(setting, &usual, &survey.next_sample()));
            let mean = times.sum::<f64>() / f64::from(SURVEYED);
            let spread =
                if lesson.reference == Reference::Excess { lesson.costs.rebuild_ms / SPREAD } else { 0.0 };
            mean + spread
        });
        let mut traffic = Traffic::new(setting, lesson.rho, rng.random(), 0);
        let (mut search, mut trend) = (Search::new(&setting.network), Trend::default());
        let operation = Operation::new(setting, lesson.costs);
        let sample = traffic.next_sample();
        trend.see(setting, &sample);
        let best = search.widest_routes(setting, &sample);
        let prospect = operation.look(setting, &sample, (&best.0, best.1), &mut work);
        let links = VecDeque::from([(sample, best)]);
        Episode { lesson, traffic, links, search, trend, operation, prospect, usual, reference_ms, work }
    }

    /// The moves that change something, as bits.
    pub fn legal(&self) -> u32 {
        features::legal(self.prospect.reroutes, self.prospect.rebuilds)
    }

    /// Whether the episode is cut short here.
    pub fn is_over(&self) -> bool {
        self.operation.done() >= self.lesson.collectives
    }

    /// Moves and runs one collective.
    pub fn step(&mut self, moved: Move) -> (f64, WanInfo) {
        let setting = &self.lesson.setting;
        let (now, (_, least_ms)) = &self.links[self.links.len() - 1];
        let (_, (best, _)) = &self.links[0];
        let least_ms = if self.lesson.reference == Reference::Excess { *least_ms } else { 0.0 };
        let done = self.operation.act(setting, moved, &self.prospect, best, now, &mut self.work);
        let base_ms = self.work.time(setting, &self.usual, now);
        let (ms, cost_ms) = (done.ms, done.cost_ms);
        let info = WanInfo { collectives: self.operation.done(), ms, cost_ms, base_ms };
        self.proceed();
        (-(ms + cost_ms - least_ms) / self.reference_ms.unwrap_or(base_ms), info)
    }

    /// Traffic goes on.
    fn proceed(&mut self) {
        let setting = &self.lesson.setting;
        let old = if self.links.len() > self.lesson.lag { self.links.pop_front() } else { None };
        let forgotten = old.is_some();
        let mut sample = old.map(|(sample, _)| sample).unwrap_or_default();
        self.traffic.next_into(&mut sample);
        let best = self.search.widest_routes(setting, &sample);
        self.links.push_back((sample, best));
        let (seen, (best, best_ms)) = &self.links[0];
        // Until the first links are old enough, they are all that is seen.
        if forgotten {
            self.trend.see(setting, seen);
        }
        self.prospect = self.operation.look(setting, seen, (best, *best_ms), &mut self.work);
    }

    /// What is seen before the next collective.
    pub fn observe(&mut self, into: &mut Observation) {
        let (seen, (best, _)) = &self.links[0];
        let (now, _) = &self.links[self.links.len() - 1];
        let setting = &self.lesson.setting;
        let base_ms = self.work.time(setting, &self.usual, now);
        let mut aside = Work::default();
        let mut view = View {
            setting,
            operation: &self.operation,
            prospect: &self.prospect,
            seen,
            best,
            correlation: self.trend.correlation(),
            lag: self.lesson.lag,
            work: &mut self.work,
        };
        view.observe(into);
        let left = 1.0 - f64::from(self.operation.done()) / f64::from(self.lesson.collectives);
        features::write_privileged(&view, now, base_ms, [self.lesson.rho, left], &mut aside, into);
    }
}
