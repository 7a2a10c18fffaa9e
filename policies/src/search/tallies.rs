//! What has been measured of every point: pooled over its trials, each with the weight of its resource.

use dynamiccl_spec::math::{exp, ln};

use super::{Found, Point, Space};

/// µs that no call falls below or exceeds: a broken clock must not make a setting the best for ever.
const SANE: (f64, f64) = (1e-6, 1e15);

/// ln µs of a told time; infinite where the setting cannot run, which is whatever is no finite time.
pub fn log_micros(micros: f64) -> f64 {
    if micros.is_finite() { ln(micros.clamp(SANE.0, SANE.1)) } else { f64::INFINITY }
}

/// One measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    /// The point.
    pub point: Point,
    /// Its position in the space.
    pub index: usize,
    /// Mean of ln µs: half as long counts as much as twice as long. Infinite once it could not run.
    pub log_micros: f64,
    /// Resource that went into it.
    pub weight: f64,
    /// Trials of it.
    pub trials: u32,
}

impl Tally {
    /// Whether every trial of it ran.
    pub fn runs(&self) -> bool {
        self.log_micros.is_finite()
    }

    fn found(&self) -> Found {
        Found { point: self.point, micros: exp(self.log_micros) }
    }
}

/// Every measured point, in the order in which they were first tried.
#[derive(Debug, Clone)]
pub struct Tallies {
    all: Vec<Tally>,
    /// Where a point stands in `all`, plus one; 0 for a point that was not tried.
    places: Vec<u32>,
    spent: f64,
    /// Sum of squared differences from the points' means, by resource, and how many trials were repeats.
    scatter: f64,
    repeats: f64,
}

impl Tallies {
    /// Nothing measured yet.
    pub fn new(space: &Space) -> Self {
        Tallies { all: Vec::new(), places: vec![0; space.points()], spent: 0.0, scatter: 0.0, repeats: 0.0 }
    }

    /// Adds what a trial took.
    pub fn add(&mut self, space: &Space, point: Point, resource: f64, micros: f64) {
        let log_micros = log_micros(micros);
        self.spent += resource;
        let index = space.index(&point);
        match self.places[index] {
            0 => {
                self.all.push(Tally { point, index, log_micros, weight: resource, trials: 1 });
                self.places[index] = self.all.len() as u32;
            }
            place => {
                let tally = &mut self.all[place as usize - 1];
                tally.weight += resource;
                tally.trials += 1;
                // Infinity less infinity is no number: what could not run once stays so.
                if !log_micros.is_finite() || !tally.runs() {
                    tally.log_micros = f64::INFINITY;
                    return;
                }
                let off = log_micros - tally.log_micros;
                tally.log_micros += off * resource / tally.weight;
                self.scatter += off * (log_micros - tally.log_micros) * resource;
                self.repeats += 1.0;
            }
        }
    }

    /// What is known of a point.
    pub fn of(&self, index: usize) -> Option<&Tally> {
        (self.places[index] as usize).checked_sub(1).map(|place| &self.all[place])
    }

    /// Every measured point.
    pub fn all(&self) -> &[Tally] {
        &self.all
    }

    /// Full measurements that were spent.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Spread of ln µs between full measurements of one point: `belief` where nothing was repeated, and worth
    /// `worth` repeats from then on.
    pub fn spread(&self, belief: f64, worth: f64) -> f64 {
        ((self.scatter + worth * belief * belief) / (self.repeats + worth)).sqrt()
    }

    /// The fastest of the points that run and that at least this much resource went into; the first of equals.
    pub fn best(&self, least_weight: f64) -> Option<Found> {
        let best = self.enough(least_weight);
        let best = best.reduce(|best, tally| if tally.log_micros < best.log_micros { tally } else { best });
        best.map(Tally::found)
    }

    /// The fastest few of them, fastest first.
    pub fn ranked(&self, least_weight: f64, count: usize) -> Vec<Found> {
        let mut ranked: Vec<&Tally> = self.enough(least_weight).collect();
        ranked.sort_by(|a, b| a.log_micros.total_cmp(&b.log_micros));
        ranked.into_iter().take(count).map(Tally::found).collect()
    }

    fn enough(&self, least_weight: f64) -> impl Iterator<Item = &Tally> {
        self.all.iter().filter(move |tally| tally.runs() && tally.weight >= least_weight)
    }
}

/// What a search knows, where all of it is in its tallies.
macro_rules! known_by_tallies {
    () => {
        fn best(&self) -> Option<Found> {
            self.tallies.best(0.0)
        }

        fn ranked(&self, count: usize) -> Vec<Found> {
            self.tallies.ranked(0.0, count)
        }

        fn spent(&self) -> f64 {
            self.tallies.spent()
        }
    };
}

pub(super) use known_by_tallies;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::search::Dimension;

    #[test]
    fn trials_of_a_point_are_pooled_by_their_resource() {
        let space = Space::new(&[Dimension::ordered(3)]);
        let mut tallies = Tallies::new(&space);
        tallies.add(&space, Point::at([1, 0, 0, 0]), 0.25, 8.0);
        tallies.add(&space, Point::at([1, 0, 0, 0]), 0.75, 128.0);
        tallies.add(&space, Point::at([2, 0, 0, 0]), 0.1, 60.0);
        assert_eq!(tallies.spent(), 1.1);
        let pooled = tallies.of(1).unwrap();
        assert!((exp(pooled.log_micros) - 64.0).abs() < 1e-9 && pooled.weight == 1.0);
        assert_eq!(tallies.of(0), None);
        assert_eq!(tallies.best(0.0).unwrap().point.value(0), 2);
        assert_eq!(tallies.best(0.9).unwrap().point.value(0), 1);
        tallies.add(&space, Point::at([0, 0, 0, 0]), 1.0, f64::INFINITY);
        assert_eq!(tallies.best(0.9).unwrap().point.value(0), 1);
    }

    #[test]
    fn what_cannot_run_is_never_best_and_stays_so() {
        let space = Space::new(&[Dimension::ordered(3)]);
        let mut tallies = Tallies::new(&space);
        tallies.add(&space, Point::at([0, 0, 0, 0]), 1.0, f64::INFINITY);
        assert_eq!((tallies.best(0.0), tallies.ranked(0.0, 3)), (None, vec![]));
        tallies.add(&space, Point::at([1, 0, 0, 0]), 1.0, 50.0);
        for micros in [1.0, f64::NAN, f64::INFINITY, 1.0] {
            tallies.add(&space, Point::at([0, 0, 0, 0]), 1.0, micros);
        }
        assert_eq!(tallies.of(0).unwrap().log_micros, f64::INFINITY);
        let ranked: Vec<usize> = tallies.ranked(0.0, 3).iter().map(|found| found.point.value(0)).collect();
        assert_eq!(ranked, [1]);
        assert!(tallies.spread(0.02, 2.0).is_finite());
    }

    #[test]
    fn the_spread_comes_to_be_that_of_the_repeats() {
        let space = Space::new(&[Dimension::ordered(3)]);
        let (mut tallies, mut random) = (Tallies::new(&space), Random::new(1));
        assert_eq!(tallies.spread(0.02, 2.0), 0.02);
        for trial in 0..240 {
            let point = Point::at([trial % 3, 0, 0, 0]);
            tallies.add(&space, point, 1.0, f64::from(trial % 3 + 1) * exp(0.1 * random.normal()));
        }
        assert!((tallies.spread(0.02, 2.0) - 0.1).abs() < 0.01, "{}", tallies.spread(0.02, 2.0));
    }
}
