//! Settings to begin with, when nothing is known: spread over the space rather than drawn blindly.

use super::tallies::Tallies;
use super::{Point, Space};
use crate::random::Random;

/// A Latin hypercube of `count` points: every part of every dimension is met equally often.
pub fn spread(space: &Space, count: usize, random: &mut Random) -> Vec<Point> {
    let mut points = vec![Point::default(); count];
    for (d, dimension) in space.dimensions().iter().enumerate() {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, random.below(last + 1));
        }
        for (point, place) in points.iter_mut().zip(order) {
            let value = (place as f64 + random.uniform()) / count as f64 * dimension.values as f64;
            *point = point.with(d, (value as usize).min(dimension.values - 1));
        }
    }
    points
}

/// A point that was not tried yet; none when all were.
pub fn untried(space: &Space, tallies: &Tallies, random: &mut Random) -> Option<Point> {
    let all = space.points();
    let from = random.below(all);
    (0..all).map(|step| (from + step) % all).find(|&i| tallies.of(i).is_none()).map(|i| space.point(i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Dimension;

    #[test]
    fn a_spread_meets_every_part() {
        let space = Space::new(&[Dimension::named(3), Dimension::ordered(6)]);
        let points = spread(&space, 6, &mut Random::new(1));
        for value in 0..3 {
            assert_eq!(points.iter().filter(|point| point.value(0) == value).count(), 2);
        }
        for value in 0..6 {
            assert_eq!(points.iter().filter(|point| point.value(1) == value).count(), 1);
        }
    }

    #[test]
    fn what_was_tried_is_left_out() {
        let space = Space::new(&[Dimension::ordered(5)]);
        let (mut tallies, mut random) = (Tallies::new(&space), Random::new(1));
        for tried in 0..5 {
            let point = untried(&space, &tallies, &mut random).unwrap();
            assert!(tallies.of(space.index(&point)).is_none(), "{tried}");
            tallies.add(&space, point, 1.0, 3.0);
        }
        assert_eq!(untried(&space, &tallies, &mut random), None);
    }
}
