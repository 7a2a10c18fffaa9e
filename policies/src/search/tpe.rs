//! Plain tree-structured Parzen estimator (Bergstra et al. 2011), with multivariate kernels.
//!
//! Start, split, number of candidates and the width of kernels over ordered values are those of Optuna's
//! multivariate sampler. Its kernels over names are wider and there is a least width, which spends more trials far
//! from what is fast; its prior is a wide Gaussian, and its oldest trials count less.
//!
//! The measured points are split into the fastest few and the rest, each gets a density, and of some
//! draws from the density of the fast ones the next trial is the one where it exceeds that of the others
//! by most. Every trial is a full measurement and no point is tried twice.

use dynamiccl_spec::math::{exp, ln};

use super::density::Kernel;
use super::tallies::{Tallies, Tally, known_by_tallies};
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
    /// The kernels of fast and of slow points.
    kernels: [Sharpened; 2],
    pending: Option<Point>,
}

/// The kernel around each of so many points.
#[derive(Debug, Clone)]
struct Sharpened {
    points: usize,
    kernel: Kernel,
}

impl Sharpened {
    fn new(space: &Space, points: usize) -> Self {
        let count = points.max(1) as f64;
        let dimensions = space.dimensions().iter().filter(|dimension| dimension.values > 1).count();
        // Scott's rule.
        let ordered = WIDTH * exp(-ln(count) / (dimensions + 4) as f64);
        Sharpened { points, kernel: Kernel::new(space, ordered, NAMED) }
    }
}

impl Tpe {
    /// A search that begins with this point.
    pub fn new(space: Space, first: Point, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut startup = sample::spread(&space, STARTUP, &mut random);
        startup[0] = first;
        startup.reverse();
        let kernels = [0, 0].map(|points| Sharpened::new(&space, points));
        Tpe { tallies: Tallies::new(&space), space, random, startup, kernels, pending: None }
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
        let running = by_time.iter().filter(|tally| tally.runs()).count();
        let fast = ((by_time.len() as f64 * FAST.0).ceil() as usize).min(FAST.1).min(running);
        let (fast, slow) = by_time.split_at(fast);
        for (sized, points) in self.kernels.iter_mut().zip([fast.len(), slow.len()]) {
            if sized.points != points {
                *sized = Sharpened::new(&self.space, points);
            }
        }
        let [of_fast, of_slow] = &self.kernels;
        let prior = 1.0 / self.space.points() as f64;
        let density = |of: &[Tally], kernel: &Kernel, point: &Point| {
            let sum = of.iter().fold(prior, |sum, tally| sum + kernel.at(&tally.point, point));
            sum / (of.len() + 1) as f64
        };
        let mut best: Option<(Point, f64)> = None;
        for _ in 0..CANDIDATES {
            let point = match fast.get(self.random.below(fast.len() + 1)) {
                Some(tally) => of_fast.kernel.draw(&tally.point, &mut self.random),
                None => self.space.point(self.random.below(self.space.points())),
            };
            let gain = density(fast, &of_fast.kernel, &point) / density(slow, &of_slow.kernel, &point);
            if self.is_new(&point) && best.is_none_or(|(_, most)| gain > most) {
                best = Some((point, gain));
            }
        }
        best.map(|(point, _)| point)
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
        }
    }

    known_by_tallies!();
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
        let [plane, x, y, ..] = trial.point.0.map(f64::from);
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
        let mut tpe = Tpe::new(space.clone(), Point::at([2, 1, 0, 0]), 4);
        let mut seen = Vec::new();
        let found = drive(&mut tpe, 1e9, |trial| {
            seen.push(space.index(&trial.point));
            f64::from(trial.point.0[1]) + 1.0
        });
        assert_eq!((seen[0], seen.len()), (space.index(&Point::at([2, 1, 0, 0])), 15));
        seen.sort_unstable();
        assert_eq!(seen, (0..15).collect::<Vec<_>>());
        assert_eq!(found.unwrap().point.value(1), 0);
    }

    #[test]
    fn what_cannot_run_is_neither_found_nor_looked_for() {
        // The deepest plane cannot run.
        let (mut fails, mut tpe) = (0, Tpe::new(space(), Point::default(), 1));
        let found = drive(&mut tpe, 100.0, |trial| {
            let cannot = trial.point.value(0) == 3;
            fails += u32::from(cannot);
            if cannot { f64::INFINITY } else { micros(trial) }
        });
        assert!(found.unwrap().point.value(0) != 3 && found.unwrap().micros < 106.0, "{found:?}");
        assert!(fails < 15, "{fails} of 100 trials, where blind ones would be 20");
        assert_eq!(drive(&mut Tpe::new(space(), Point::default(), 1), 30.0, |_| f64::INFINITY), None);
    }

    #[test]
    fn kernels_narrow_with_the_points_of_their_density_and_their_dimensions() {
        const MIDDLE: Point = Point::at([25, 0, 0, 0]);
        let at_centre = |dimensions: &[Dimension], points| {
            let space = Space::new(dimensions);
            Sharpened::new(&space, points).kernel.at(&MIDDLE, &MIDDLE)
        };
        let line = [Dimension::ordered(50)];
        let with_nothing = [Dimension::ordered(50), Dimension::ordered(1)];
        let narrower = at_centre(&line, 128) / at_centre(&line, 4);
        assert!((narrower - 2.0).abs() < 0.05, "a fifth root: {narrower}");
        assert_eq!(at_centre(&line, 40), at_centre(&with_nothing, 40), "one value is no dimension");
    }
}
