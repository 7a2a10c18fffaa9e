//! Returns in units of what is usual, so that the critic learns numbers around zero whatever rewards are.

use serde::{Deserialize, Serialize};

/// How much of what is usual stays after a rollout.
const KEPT: f64 = 0.98;

/// Running mean and spread of returns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Returns {
    mean: f64,
    square: f64,
    weight: f64,
}

impl Default for Returns {
    fn default() -> Self {
        Returns { mean: 0.0, square: 1.0, weight: 0.0 }
    }
}

impl Returns {
    /// Takes in the returns of a rollout.
    pub fn learn(&mut self, returns: &[f32]) {
        let count = returns.len().max(1) as f64;
        let mean = returns.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = returns.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / count;
        self.weight = KEPT * self.weight + (1.0 - KEPT);
        let new = (1.0 - KEPT) / self.weight;
        self.mean += new * (mean - self.mean);
        self.square += new * (square - self.square);
    }

    /// A return in usual units.
    pub fn usual(&self, x: f32) -> f32 {
        ((f64::from(x) - self.mean) / self.spread()) as f32
    }

    /// What a number in usual units stands for.
    pub fn meant(&self, x: f32) -> f32 {
        (f64::from(x) * self.spread() + self.mean) as f32
    }

    fn spread(&self) -> f64 {
        (self.square - self.mean * self.mean).max(1e-6).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_returns_are_around_zero_and_come_back() {
        let mut returns = Returns::default();
        for _ in 0..300 {
            returns.learn(&[-12.0, -8.0]);
        }
        assert!((returns.usual(-8.0) - 1.0).abs() < 1e-3 && (returns.usual(-12.0) + 1.0).abs() < 1e-3);
        assert!((returns.meant(returns.usual(-9.5)) + 9.5).abs() < 1e-4);
    }
}
