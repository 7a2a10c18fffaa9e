//! Searches for the fastest setting of one call, by trying settings.
//!
//! A search is asked for the next trial and told what it took, so that the same search runs over a
//! simulator in one go (see [`drive`]) and inside a job, one call at a time.
//! It knows only the shape of a [`Space`]: neither what a setting means nor how a time comes about.

pub mod bandit;
pub mod coordinate;
mod density;
pub mod mraco;
mod sample;
pub mod sequence;
pub mod space;
mod tallies;
pub mod tpe;

pub use bandit::{Bandit, Rule};
pub use coordinate::Coordinate;
pub use mraco::Mraco;
pub use sequence::Sequence;
pub use space::{Dimension, Point, Space};
pub use tpe::Tpe;

/// What a search wants to know next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// The setting to try.
    pub point: Point,
    /// How much of a full measurement is wanted, above 0 and at most 1: fewer repeats are noisier.
    pub resource: f64,
}

/// The best setting that a search knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The setting.
    pub point: Point,
    /// µs that it is believed to take.
    pub micros: f64,
}

/// A search under way.
pub trait Search: Send {
    /// The next trial; none when the search is over. Asked again before it is told, it says the same.
    fn ask(&mut self) -> Option<Trial>;

    /// The next trial, while all of them together take no more than `budget` full measurements.
    fn ask_within(&mut self, budget: f64) -> Option<Trial> {
        self.ask().filter(|trial| self.spent() + trial.resource <= budget)
    }

    /// What the trial that was asked for took, in µs; infinite where the setting cannot run.
    fn tell(&mut self, micros: f64);

    /// The best setting so far, by all that was measured of it; none while nothing has run.
    fn best(&self) -> Option<Found>;

    /// The best few settings so far, best first.
    fn ranked(&self, count: usize) -> Vec<Found>;

    /// What was spent so far, in full measurements.
    fn spent(&self) -> f64;
}

/// Runs a search to its end, or until it has spent `budget` full measurements. Gives what it has found.
pub fn drive(search: &mut dyn Search, budget: f64, mut measure: impl FnMut(&Trial) -> f64) -> Option<Found> {
    while let Some(trial) = search.ask_within(budget) {
        search.tell(measure(&trial));
    }
    search.best()
}
