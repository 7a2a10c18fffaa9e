//! Searches that learn nothing while they run: every point in turn, or every point in random order.

use super::tallies::{Tallies, known_by_tallies};
use super::{Found, Point, Search, Space, Trial};
use crate::random::Random;

/// Tries a fixed order of points, each once and in full.
#[derive(Debug, Clone)]
pub struct Sequence {
    space: Space,
    order: Vec<u32>,
    next: usize,
    tallies: Tallies,
}

impl Sequence {
    /// Exhaustive grid search: the first point, then every other in order of position.
    pub fn grid(space: Space, first: Point) -> Self {
        let first = space.index(&first) as u32;
        let rest = (0..space.points() as u32).filter(|&index| index != first);
        let order = std::iter::once(first).chain(rest).collect();
        Sequence { tallies: Tallies::new(&space), space, order, next: 0 }
    }

    /// Random search without repeats: the first point, then the others in the order that the seed decides.
    pub fn random(space: Space, first: Point, seed: u64) -> Self {
        let mut sequence = Sequence::grid(space, first);
        let mut random = Random::new(seed);
        // Fisher and Yates; the first point stays where it is.
        for last in (2..sequence.order.len()).rev() {
            sequence.order.swap(last, 1 + random.below(last));
        }
        sequence
    }
}

impl Search for Sequence {
    fn ask(&mut self) -> Option<Trial> {
        let point = self.space.point(*self.order.get(self.next)? as usize);
        Some(Trial { point, resource: 1.0 })
    }

    fn tell(&mut self, micros: f64) {
        if let Some(trial) = self.ask() {
            self.tallies.add(&self.space, trial.point, trial.resource, micros);
            self.next += 1;
        }
    }

    known_by_tallies!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Dimension, drive};

    fn space() -> Space {
        Space::new(&[Dimension::named(3), Dimension::ordered(8)])
    }

    fn micros(trial: &Trial) -> f64 {
        let [name, value, ..] = trial.point.0.map(f64::from);
        100.0 + 10.0 * name + (value - 5.0) * (value - 5.0)
    }

    #[test]
    fn the_grid_finds_the_best_of_all_with_one_trial_each() {
        let mut grid = Sequence::grid(space(), Point::at([1, 2, 0, 0]));
        assert_eq!(grid.ask().unwrap().point, Point::at([1, 2, 0, 0]));
        let found = drive(&mut grid, f64::INFINITY, micros).unwrap();
        assert_eq!((found.point, grid.spent()), (Point::at([0, 5, 0, 0]), 24.0));
        assert_eq!(grid.ask(), None);
    }

    #[test]
    fn random_order_tries_everything_once_within_its_budget() {
        let mut random = Sequence::random(space(), Point::default(), 5);
        let mut seen = Vec::new();
        drive(&mut random, 1e9, |trial| {
            seen.push(space().index(&trial.point));
            micros(trial)
        });
        assert_eq!(seen[0], 0);
        let in_order: Vec<usize> = (0..24).collect();
        assert_ne!(seen, in_order);
        seen.sort_unstable();
        assert_eq!(seen, in_order);

        let mut few = Sequence::random(space(), Point::default(), 5);
        drive(&mut few, 7.0, micros);
        assert_eq!(few.spent(), 7.0);
    }
}
