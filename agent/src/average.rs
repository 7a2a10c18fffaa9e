//! A running mean of the parameters: what is judged and left behind.
//!
//! Steps of an optimiser wander around what they have learned; their mean does not (Polyak and Juditsky
//! 1992). The agent acts and learns with the parameters themselves.

use serde::{Deserialize, Serialize};

use crate::wide::wide;

/// How much of the mean stays after a step, once there have been many.
const KEPT: f32 = 0.998;

/// A running mean of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Average {
    mean: Vec<f32>,
    steps: u64,
}

impl Average {
    /// The mean of these numbers alone.
    pub fn new(values: &[f32]) -> Self {
        Average { mean: values.to_vec(), steps: 0 }
    }

    /// Takes in the numbers after a step. Of the first steps, the last tenth counts.
    pub fn take_in(&mut self, values: &[f32]) {
        self.steps += 1;
        let kept = KEPT.min(1.0 - 10.0 / (self.steps as f32 + 10.0));
        let both = self.mean.iter_mut().zip(values);
        wide!({
            for (mean, x) in both {
                *mean = kept * *mean + (1.0 - kept) * x;
            }
        });
    }

    /// The mean.
    pub fn values(&self) -> &[f32] {
        &self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_and_steadies() {
        let mut average = Average::new(&[5.0]);
        for step in 0..4000 {
            average.take_in(&[if step % 2 == 0 { 1.0 } else { 3.0 }]);
        }
        assert!((average.values()[0] - 2.0).abs() < 0.01, "{:?}", average.values());
    }

    #[test]
    fn the_start_is_soon_forgotten() {
        let mut average = Average::new(&[1e6]);
        (1..=200).for_each(|step| average.take_in(&[step as f32]));
        // A tenth of 200 behind, and nothing left of a million.
        assert!((170.0..190.0).contains(&average.values()[0]), "{:?}", average.values());
    }
}
