//! The four modes of the study: nothing changes, the ring is rebuilt every so often, every collective is rerouted,
//! or both. All meet the same traffic.

use std::collections::VecDeque;

use serde::Serialize;

use super::arrangement::Work;
use super::traffic::{Sample, Traffic};
use super::{Arrangement, Routes, Search, Setting};

/// What may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing.
    Base,
    /// The ring, every so many collectives.
    Ccl,
    /// The routes, at every collective.
    Wan,
    /// Both.
    Both,
}

impl Mode {
    /// All of them, in the order of the study.
    pub const ALL: [Mode; 4] = [Mode::Base, Mode::Ccl, Mode::Wan, Mode::Both];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Base => "base",
            Mode::Ccl => "ccl",
            Mode::Wan => "wan",
            Mode::Both => "both",
        }
    }
}

/// How the modes are run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Collectives from one rebuilding to the next.
    pub cadence: u64,
    /// Collectives after which links are seen.
    pub lag: usize,
    /// Correlation of the traffic between neighbours in time.
    pub rho: f64,
    /// Seed of the traffic.
    pub seed: u64,
}

/// The four modes under way: mean times so far.
#[derive(Debug, Clone)]
pub struct ModeRun<'a> {
    setting: &'a Setting,
    modes: Modes,
    traffic: Traffic,
    /// What is seen and what runs, oldest first.
    samples: VecDeque<Sample>,
    search: Search,
    work: Work,
    usual: Arrangement,
    rebuilt: [Arrangement; 2],
    sums: [f64; 4],
    done: u64,
}

impl Modes {
    /// Begins.
    pub fn begin<'a>(&self, setting: &'a Setting, search: Search) -> ModeRun<'a> {
        let usual = Arrangement::usual(&setting.network);
        ModeRun {
            setting,
            modes: *self,
            traffic: Traffic::new(setting, self.rho, self.seed, 0),
            samples: VecDeque::new(),
            search,
            work: Work::default(),
            rebuilt: [usual.clone(), usual.clone()],
            usual,
            sums: [0.0; 4],
            done: 0,
        }
    }
}

impl ModeRun<'_> {
    /// Runs so many collectives more in every mode.
    pub fn run(&mut self, collectives: u64) {
        for _ in 0..collectives {
            let times = self.step();
            self.sums.iter_mut().zip(times).for_each(|(sum, ms)| *sum += ms);
            self.done += 1;
        }
    }

    /// One collective: ms in each mode.
    pub fn step(&mut self) -> [f64; 4] {
        let old = if self.samples.len() > self.modes.lag { self.samples.pop_front() } else { None };
        let mut sample = old.unwrap_or_default();
        self.traffic.next_into(&mut sample);
        self.samples.push_back(sample);
        let (seen, now) = (&self.samples[0], &self.samples[self.samples.len() - 1]);
        let Self { setting, search, work, usual, rebuilt: [ccl, both], .. } = self;
        if self.done.is_multiple_of(self.modes.cadence) {
            *ccl = search.usual_routes(setting, seen).0;
            *both = search.widest_routes(setting, seen).0;
        }
        let mut rerouted = |arrangement: &Arrangement| {
            // Over its usual routes where others would be slower, so that rerouting never harms what it sees.
            let routes = Routes::usual(&setting.network, &arrangement.ring);
            let own = Arrangement { ring: arrangement.ring.clone(), routes };
            let routes = own.rerouted(setting, seen, work);
            work.time_of(setting, &own.ring, &routes, now)
        };
        let [wan, both] = [rerouted(usual), rerouted(both)];
        [work.time(setting, usual, now), work.time(setting, ccl, now), wan, both]
    }

    /// Collectives that have run.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Mean ms of each mode.
    pub fn means(&self) -> [f64; 4] {
        self.sums.map(|sum| sum / self.done.max(1) as f64)
    }
}
