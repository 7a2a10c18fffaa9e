//! Observations in units of what is usual: running means and spreads of contexts and history rows.
//!
//! The learner sees normalised rows. Acting and exported networks see raw ones: the same scaling is folded
//! into their first weights ([`crate::Params::folded`]), so a frozen policy needs no normaliser.

use serde::{Deserialize, Serialize};

/// The smallest spread that is divided by: what is rare must not be loud.
const NARROWEST: f64 = 0.05;
/// The spread below which a feature has not moved yet, and stays as it is.
const STILL: f64 = 1e-4;

/// What is taken from each number of a row, and what it is then multiplied by.
pub type Scaling = Vec<(f32, f32)>;

/// Running moments of rows of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normaliser {
    count: f64,
    mean: Vec<f64>,
    /// Σ of squared distances from the mean.
    squares: Vec<f64>,
}

impl Normaliser {
    /// One that has seen nothing and changes nothing.
    pub fn new(width: usize) -> Self {
        Normaliser { count: 0.0, mean: vec![0.0; width], squares: vec![0.0; width] }
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Takes in rows, one after the other.
    pub fn learn<'a>(&mut self, rows: impl Iterator<Item = &'a [f32]>) {
        for row in rows {
            self.count += 1.0;
            for ((mean, squares), &x) in self.mean.iter_mut().zip(&mut self.squares).zip(row) {
                let off = f64::from(x) - *mean;
                *mean += off / self.count;
                *squares += off * (f64::from(x) - *mean);
            }
        }
    }

    /// What is done to each number.
    pub fn scaling(&self) -> Scaling {
        let of = |(&mean, &squares): (&f64, &f64)| {
            if self.count < 2.0 {
                return (0.0, 1.0);
            }
            let spread = (squares / self.count).sqrt();
            let scale = if spread < STILL { 1.0 } else { 1.0 / spread.max(NARROWEST) };
            (mean as f32, scale as f32)
        };
        self.mean.iter().zip(&self.squares).map(of).collect()
    }
}

/// Puts rows into usual units, in place.
pub fn normalise(scaling: &[(f32, f32)], rows: &mut [f32]) {
    for row in rows.chunks_exact_mut(scaling.len()) {
        row.iter_mut().zip(scaling).for_each(|(x, (mean, scale))| *x = (*x - mean) * scale);
    }
}
