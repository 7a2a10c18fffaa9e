//! Parzen densities over a space: a product of one kernel per dimension around every observed point.
//!
//! A kernel over an ordered dimension is a Gaussian cut off at its ends; over a named one, the same
//! Gaussian at distance 0 or 1. Each sums to 1 over the space, and so does a uniform prior, so that what
//! nobody has looked at is neither good nor bad.

use dynamiccl_spec::math::exp;

use super::space::DIMENSIONS;
use super::{Point, Space};
use crate::random::Random;

/// Numbers that a draw takes at least: a seed replays what it did when spaces had four dimensions.
const DRAWS: usize = 4;

/// The kernel of every dimension around every value.
#[derive(Debug, Clone)]
pub struct Kernel {
    values: [usize; DIMENSIONS],
    /// By dimension: a row per centre, with the weight of each value.
    rows: [Vec<f64>; DIMENSIONS],
}

impl Kernel {
    /// A kernel this wide in ordered and in named dimensions; distances run from 0 to 1.
    pub fn new(space: &Space, ordered: f64, named: f64) -> Self {
        let mut kernel = Kernel { values: [1; DIMENSIONS], rows: std::array::from_fn(|_| vec![1.0]) };
        for (d, dimension) in space.dimensions().iter().enumerate() {
            let width = if dimension.ordered { ordered } else { named };
            let weigh = |centre, value| {
                let distance = dimension.distance(centre, value) / width;
                exp(-0.5 * distance * distance)
            };
            kernel.values[d] = dimension.values;
            kernel.rows[d] = Vec::with_capacity(dimension.values * dimension.values);
            for centre in 0..dimension.values {
                let sum: f64 = (0..dimension.values).map(|value| weigh(centre, value)).sum();
                kernel.rows[d].extend((0..dimension.values).map(|value| weigh(centre, value) / sum));
            }
        }
        kernel
    }

    /// The density at a point of the kernel around another.
    pub fn at(&self, centre: &Point, point: &Point) -> f64 {
        (0..DIMENSIONS).fold(1.0, |density, d| density * self.row(d, centre)[point.value(d)])
    }

    /// Adds the density of the kernel around `centre` to every point of the space.
    pub fn spread(&self, centre: &Point, density: &mut [f64]) {
        let rows: [&[f64]; DIMENSIONS] = std::array::from_fn(|d| self.row(d, centre));
        let used = rows.iter().rposition(|row| row.len() > 1).map_or(1, |last| last + 1);
        fill(&rows[..used], 1.0, density);
    }

    /// Draws a point from the kernel around another.
    pub fn draw(&self, centre: &Point, random: &mut Random) -> Point {
        let used = self.values.iter().rposition(|&values| values > 1).map_or(1, |last| last + 1);
        (0..used.max(DRAWS)).fold(Point::default(), |point, d| {
            let mut left = random.uniform();
            let row = self.row(d, centre);
            let value = row.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            point.with(d, value.unwrap_or(row.len() - 1))
        })
    }

    fn row(&self, dimension: usize, centre: &Point) -> &[f64] {
        let (values, from) = (self.values[dimension], self.values[dimension] * centre.value(dimension));
        &self.rows[dimension][from..from + values]
    }
}

/// Adds the product of one weight of each row to every place; the last row runs fastest.
fn fill(rows: &[&[f64]], outer: f64, density: &mut [f64]) {
    match rows {
        [] => {}
        [last] => density.iter_mut().zip(*last).for_each(|(sum, inner)| *sum += outer * inner),
        [first, rest @ ..] => {
            let each = (density.len() / first.len()).max(1);
            for (weight, part) in first.iter().zip(density.chunks_exact_mut(each)) {
                fill(rest, outer * weight, part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Dimension;

    #[test]
    fn a_kernel_is_a_density_around_its_centre() {
        let space = Space::new(&[Dimension::named(3), Dimension::ordered_and_own(4), Dimension::ordered(7)]);
        let kernel = Kernel::new(&space, 0.2, 0.5);
        let centre = Point::at([1, 4, 3, 0]);
        let mut density = vec![0.0; space.points()];
        kernel.spread(&centre, &mut density);
        assert!((density.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (index, &there) in density.iter().enumerate() {
            let point = space.point(index);
            assert!((there - kernel.at(&centre, &point)).abs() < 1e-15, "{point:?}");
            assert!(point == centre || there < kernel.at(&centre, &centre), "{point:?}");
        }
    }

    #[test]
    fn draws_follow_the_density() {
        let space = Space::new(&[Dimension::named(2), Dimension::ordered(4)]);
        let kernel = Kernel::new(&space, 0.3, 0.7);
        let (centre, mut random) = (Point::at([1, 1, 0, 0]), Random::new(2));
        let mut counts = [0.0; 8];
        for _ in 0..20_000 {
            counts[space.index(&kernel.draw(&centre, &mut random))] += 1.0 / 20_000.0;
        }
        for (index, share) in counts.into_iter().enumerate() {
            assert!((share - kernel.at(&centre, &space.point(index))).abs() < 0.015, "{index}: {share}");
        }
    }
}
