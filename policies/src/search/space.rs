//! The shape of what is searched: some dimensions with a few values each, and points in them.
//!
//! Searches see only this. What a value means is said where a space is made for a purpose.

/// Most dimensions that a space has.
pub const DIMENSIONS: usize = 7;

/// One value of every dimension, as indices; dimensions that a space lacks are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Point(pub [u8; DIMENSIONS]);

impl Point {
    /// These values of the first dimensions, and 0 of the others.
    pub const fn at<const N: usize>(values: [u8; N]) -> Self {
        let mut point = Point([0; DIMENSIONS]);
        let mut dimension = 0;
        while dimension < N {
            point.0[dimension] = values[dimension];
            dimension += 1;
        }
        point
    }

    /// The same with another value of one dimension.
    pub const fn with(mut self, dimension: usize, value: usize) -> Self {
        self.0[dimension] = value as u8;
        self
    }

    /// The value of a dimension.
    pub const fn value(&self, dimension: usize) -> usize {
        self.0[dimension] as usize
    }
}

/// One dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// How many values it has, at least one.
    pub values: usize,
    /// Whether neighbouring values are alike. Without order, every value is as far from any other.
    pub ordered: bool,
    /// Whether the last value stands beside the order ("NCCL's own count"): near its upper end for those
    /// who need a distance, on no line for those who walk along one.
    pub last_apart: bool,
}

impl Dimension {
    /// Values without order.
    pub const fn named(values: usize) -> Self {
        Dimension { values, ordered: false, last_apart: false }
    }

    /// Values in order.
    pub const fn ordered(values: usize) -> Self {
        Dimension { values, ordered: true, last_apart: false }
    }

    /// Values in order, and one beside them.
    pub const fn ordered_and_own(values: usize) -> Self {
        Dimension { values: values + 1, ordered: true, last_apart: true }
    }

    /// The values that have neighbours.
    pub const fn line(&self) -> usize {
        if self.last_apart { self.values - 1 } else { self.values }
    }

    /// How far apart two values are, from 0 to 1.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        if !self.ordered {
            return f64::from(u8::from(a != b));
        }
        a.abs_diff(b) as f64 / (self.values - 1).max(1) as f64
    }
}

/// All points of some dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    dimensions: Vec<Dimension>,
}

impl Space {
    /// The space of these dimensions: one to [`DIMENSIONS`] of them, of one to 256 values each.
    pub fn new(dimensions: &[Dimension]) -> Self {
        assert!((1..=DIMENSIONS).contains(&dimensions.len()), "{} dimensions", dimensions.len());
        assert!(dimensions.iter().all(|d| (1..=256).contains(&d.values)), "{dimensions:?}");
        Space { dimensions: dimensions.to_vec() }
    }

    /// Its dimensions.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// How many points it has.
    pub fn points(&self) -> usize {
        self.dimensions.iter().map(|d| d.values).product()
    }

    /// The position of a point: the last dimension runs fastest.
    pub fn index(&self, point: &Point) -> usize {
        self.dimensions.iter().zip(point.0).fold(0, |index, (d, value)| index * d.values + usize::from(value))
    }

    /// The point at a position.
    pub fn point(&self, mut index: usize) -> Point {
        let mut point = Point::default();
        for (dimension, d) in self.dimensions.iter().enumerate().rev() {
            point = point.with(dimension, index % d.values);
            index /= d.values;
        }
        point
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_points_are_the_same_thing() {
        let space = Space::new(&[Dimension::named(3), Dimension::ordered_and_own(4), Dimension::ordered(7)]);
        assert_eq!(space.points(), 3 * 5 * 7);
        for index in 0..space.points() {
            let point = space.point(index);
            assert_eq!(space.index(&point), index);
        }
        assert_eq!(space.point(1).value(2), 1, "the last dimension runs fastest");
    }

    #[test]
    fn order_makes_neighbours() {
        let ordered = Dimension::ordered(5);
        assert_eq!((ordered.distance(0, 1), ordered.distance(4, 0)), (0.25, 1.0));
        assert_eq!(Dimension::named(5).distance(0, 1), Dimension::named(5).distance(0, 4));
        assert_eq!(Dimension::ordered_and_own(4).line(), 4);
        assert_eq!(Dimension::ordered(1).distance(0, 0), 0.0);
    }
}
