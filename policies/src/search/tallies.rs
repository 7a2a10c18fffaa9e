//! What has been measured of every point: pooled over its trials, each with the weight of its resource.

use dynamiccl_spec::math::{exp, ln};

use super::{Found, Point, Space};

/// Nobody's time: µs that no call reaches, in place of "cannot run".
const NEVER: f64 = 1e15;

/// One measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    /// The point.
    pub point: Point,
    /// Its position in the space.
    pub index: usize,
    /// Mean of ln µs: half as long counts as much as twice as long.
    pub log_micros: f64,
    /// Resource that went into it.
    pub weight: f64,
}

/// Every measured point, in the order in which they were first tried.
#[derive(Debug, Clone)]
pub struct Tallies {
    all: Vec<Tally>,
    /// Where a point stands in `all`, plus one; 0 for a point that was not tried.
    places: Vec<u32>,
    spent: f64,
}

impl Tallies {
    /// Nothing measured yet.
    pub fn new(space: &Space) -> Self {
        Tallies { all: Vec::new(), places: vec![0; space.points()], spent: 0.0 }
    }

    /// Adds what a trial took.
    pub fn add(&mut self, space: &Space, point: Point, resource: f64, micros: f64) {
        let log_micros = ln(if micros.is_finite() { micros.clamp(1e-6, NEVER) } else { NEVER });
        self.spent += resource;
        let index = space.index(&point);
        match self.places[index] {
            0 => {
                self.all.push(Tally { point, index, log_micros, weight: resource });
                self.places[index] = self.all.len() as u32;
            }
            place => {
                let tally = &mut self.all[place as usize - 1];
                tally.weight += resource;
                tally.log_micros += (log_micros - tally.log_micros) * resource / tally.weight;
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

    /// The fastest of the points that at least this much resource went into; the first of equals.
    pub fn best(&self, least_weight: f64) -> Option<Found> {
        let enough = self.all.iter().filter(|tally| tally.weight >= least_weight);
        let best = enough.reduce(|best, tally| if tally.log_micros < best.log_micros { tally } else { best });
        best.map(|tally| Found { point: tally.point, micros: exp(tally.log_micros) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Dimension;

    #[test]
    fn trials_of_a_point_are_pooled_by_their_resource() {
        let space = Space::new(&[Dimension::ordered(3)]);
        let mut tallies = Tallies::new(&space);
        tallies.add(&space, Point([1, 0, 0, 0]), 0.25, 8.0);
        tallies.add(&space, Point([1, 0, 0, 0]), 0.75, 128.0);
        tallies.add(&space, Point([2, 0, 0, 0]), 0.1, 60.0);
        assert_eq!(tallies.spent(), 1.1);
        let pooled = tallies.of(1).unwrap();
        assert!((exp(pooled.log_micros) - 64.0).abs() < 1e-9 && pooled.weight == 1.0);
        assert_eq!(tallies.of(0), None);
        assert_eq!(tallies.best(0.0).unwrap().point.value(0), 2);
        assert_eq!(tallies.best(0.9).unwrap().point.value(0), 1);
        tallies.add(&space, Point([0, 0, 0, 0]), 1.0, f64::INFINITY);
        assert_eq!(tallies.best(0.9).unwrap().point.value(0), 1);
    }
}
