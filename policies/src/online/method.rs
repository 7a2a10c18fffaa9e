//! The searches that run inside a job, each with how it uses the job's calls.

use dynamiccl_spec::CostTable;

use crate::search::mraco::Schedule;
use crate::search::{Bandit, Coordinate, Mraco, Rule, Search, Sequence, Tpe};
use crate::settings::OwnSettings;

/// Most calls of one trial.
pub const MOST_CALLS: usize = 9;

/// How one search runs inside a job.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Calls of a full measurement.
    pub calls: u8,
    /// Full measurements after which the search ends, whatever it thinks.
    pub budget: f64,
    /// Whether it searches before the first call of a kind, with calls beside the job's own.
    pub before: bool,
    /// Makes the search for the settings of one kind of call. It begins with NCCL's own.
    pub make: fn(&OwnSettings, &CostTable, u64) -> Box<dyn Search>,
}

/// MRACO as TuCCL runs it: the lookup table is filled before the job's calls. A full measurement is nine
/// calls.
pub const MRACO: Method = Method { name: "mraco", before: true, ..MRACO_ONLINE };

/// MRACO on the job's own calls.
pub const MRACO_ONLINE: Method = Method {
    name: "mraco_online",
    calls: 9,
    budget: f64::INFINITY,
    before: false,
    make: |settings, _, seed| {
        let (space, widths) = (settings.space(), settings.widths());
        Box::new(Mraco::new(space, settings.own(), &widths, Schedule::SHORT, seed))
    },
};

/// Plain TPE: forty trials of three calls.
pub const TPE: Method = Method {
    name: "tpe",
    calls: 3,
    budget: 40.0,
    before: false,
    make: |settings, _, seed| Box::new(Tpe::new(settings.space(), settings.own(), seed)),
};

/// Coordinate descent: trials of three calls until the bottom is reached.
pub const COORDINATE: Method = Method {
    name: "coordinate",
    calls: 3,
    budget: f64::INFINITY,
    before: false,
    make: |settings, _, _| Box::new(Coordinate::new(settings.space(), settings.own())),
};

/// UCB over a few arms, without an end.
pub const BANDIT: Method = Method {
    name: "bandit",
    calls: 1,
    budget: f64::INFINITY,
    before: false,
    make: |settings, table, seed| Box::new(Bandit::new(settings.arms(table), Rule::Ucb, seed)),
};

/// ε-greedy over the same arms.
pub const EPSILON: Method = Method {
    name: "epsilon",
    calls: 1,
    budget: f64::INFINITY,
    before: false,
    make: |settings, table, seed| Box::new(Bandit::new(settings.arms(table), Rule::EPSILON, seed)),
};

/// Exhaustive grid search, a call for every setting.
pub const GRID: Method = Method {
    name: "grid",
    calls: 1,
    budget: f64::INFINITY,
    before: false,
    make: |settings, _, _| Box::new(Sequence::grid(settings.space(), settings.own())),
};

/// Random search: forty settings, three calls each.
pub const RANDOM_SEARCH: Method = Method {
    name: "random_search",
    calls: 3,
    budget: 40.0,
    before: false,
    make: |settings, _, seed| Box::new(Sequence::random(settings.space(), settings.own(), seed)),
};
