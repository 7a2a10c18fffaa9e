//! Plain tree-structured Parzen estimator (Bergstra et al. 2011), with the multivariate kernel and the
//! defaults of Optuna's sampler.
//!
//! The measured points are split into the fastest few and the rest, each gets a density, and of some
//! draws from the density of the fast ones the next trial is the one where it exceeds that of the others
//! by most. Every trial is a full measurement and no point is tried twice.

use super::density::Kernel;
use super::tallies::{Tallies, Tally};
use super::{Found, Point, Search, Space, Trial, sample};
use crate::random::Random;

/// Trials before the densities are asked.
const STARTUP: usize = 10;
/// Draws from which one is chosen.
const CANDIDATES: usize = 24;
/// Share of the trials that counts as fast, and the most of them.
const FAST: (f64, usize) = (0.1, 25);
/// Width of a kernel around one point; more points make it narrower.
const WIDTH: f64 = 0.2;
/// Width over names, wide enough that another name is tried now and then.
const NAMED: f64 = 0.5;

/// A search by Parzen densities.
#[derive(Debug, Clone)]
pub struct Tpe {
    space: Space,
    random: Random,
    startup: Vec<Point>,
    tallies: Tallies,
    kernel: Kernel,
    pending: Option<Point>,
}

impl Tpe {
    /// A search that begins with this point.
    pub fn new(space: Space, first: Point, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut startup = sample::spread(&space, STARTUP, &mut random);
        startup[0] = first;
        startup.reverse();
        let (tallies, kernel) = (Tallies::new(&space), Kernel::new(&space, WIDTH, NAMED));
        Tpe { space, random, startup, tallies, kernel, pending: None }
    }

    fn next(&mut self) -> Option<Point> {
        while let Some(point) = self.startup.pop() {
            if self.is_new(&point) {
                return Some(point);
            }
        }
        self.likeliest().or_else(|| sample::untried(&self.space, &self.tallies, &mut self.random))
    }

    fn is_new(&self, point: &Point) -> bool {
        self.tallies.of(self.space.index(point)).is_none()
    }

    /// Of some draws the one that looks best; none where all were tried before.
    fn likeliest(&mut self) -> Option<Point> {
        let mut by_time: Vec<Tally> = self.tallies.all().to_vec();
        by_time.sort_by(|a, b| a.log_micros.total_cmp(&b.log_micros));
        let fast = ((by_time.len() as f64 * FAST.0).ceil() as usize).min(FAST.1);
        let (fast, slow) = by_time.split_at(fast);
        let prior = 1.0 / self.space.points() as f64;
        let density = |of: &[Tally], point: &Point| {
            let sum = of.iter().fold(prior, |sum, tally| sum + self.kernel.at(&tally.point, point));
            sum / (of.len() + 1) as f64
        };
        let mut best: Option<(Point, f64)> = None;
        for _ in 0..CANDIDATES {
            let point = match fast.get(self.random.below(fast.len() + 1)) {
                Some(tally) => self.kernel.draw(&tally.point, &mut self.random),
                None => self.space.point(self.random.below(self.space.points())),
            };
            let gain = density(fast, &point) / density(slow, &point);
            if self.is_new(&point) && best.is_none_or(|(_, most)| gain > most) {
                best = Some((point, gain));
            }
        }
        best.map(|(point, _)| point)
    }

    /// Kernels narrow as points get denser; they are remade when the points have doubled.
    fn narrow(&mut self) {
        let points = self.tallies.all().len();
        if points.is_power_of_two() {
            // Scott's rule: the (dimensions + 4)th root, taken for four dimensions.
            let eighth = (points as f64).sqrt().sqrt().sqrt();
            self.kernel = Kernel::new(&self.space, WIDTH / eighth, NAMED);
        }
    }
}

impl Search for Tpe {
    fn ask(&mut self) -> Option<Trial> {
        if self.pending.is_none() {
            self.pending = self.next();
        }
        self.pending.map(|point| Trial { point, resource: 1.0 })
    }

    fn tell(&mut self, micros: f64) {
        if let Some(point) = self.pending.take() {
            self.tallies.add(&self.space, point, 1.0, micros);
            self.narrow();
        }
    }

    fn best(&self) -> Option<Found> {
        self.tallies.best(0.0)
    }

    fn ranked(&self, count: usize) -> Vec<Found> {
        self.tallies.ranked(0.0, count)
    }

    fn spent(&self) -> f64 {
        self.tallies.spent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Dimension, Sequence, drive};

    fn space() -> Space {
        Space::new(&[Dimension::named(5), Dimension::ordered_and_own(12), Dimension::ordered(12)])
    }

    /// A valley in each of five planes, one of them deeper than the others.
    fn micros(trial: &Trial) -> f64 {
        let [plane, x, y, _] = trial.point.0.map(f64::from);
        let floor = if plane == 3.0 { 50.0 } else { 100.0 + plane };
        floor * (1.0 + 0.02 * (x - 8.0) * (x - 8.0) + 0.01 * (y - 2.0) * (y - 2.0))
    }

    #[test]
    fn it_beats_random_search_at_the_same_number_of_trials() {
        let (mut tpe, mut random) = (0.0, 0.0);
        for seed in 0..20 {
            tpe += drive(&mut Tpe::new(space(), Point::default(), seed), 60.0, micros).unwrap().micros;
            let mut blind = Sequence::random(space(), Point::default(), seed);
            random += drive(&mut blind, 60.0, micros).unwrap().micros;
        }
        assert!(tpe / 20.0 < 50.5, "{}", tpe / 20.0);
        assert!(random / 20.0 > 52.0, "{}", random / 20.0);
    }

    #[test]
    fn it_ends_after_every_point_and_repeats_none() {
        let space = Space::new(&[Dimension::named(3), Dimension::ordered(5)]);
        let mut tpe = Tpe::new(space.clone(), Point([2, 1, 0, 0]), 4);
        let mut seen = Vec::new();
        let found = drive(&mut tpe, 1e9, |trial| {
            seen.push(space.index(&trial.point));
            f64::from(trial.point.0[1]) + 1.0
        });
        assert_eq!((seen[0], seen.len()), (space.index(&Point([2, 1, 0, 0])), 15));
        seen.sort_unstable();
        assert_eq!(seen, (0..15).collect::<Vec<_>>());
        assert_eq!(found.unwrap().point.value(1), 0);
    }
}
