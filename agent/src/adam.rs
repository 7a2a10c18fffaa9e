//! Adam over one row of numbers, and the length of a gradient.
//!
//! Sums run in one order and in one thread, so that a step is the same bits however the gradient was
//! shared out. Which number belongs to which tensor is not known here.

use serde::{Deserialize, Serialize};

use crate::wide::wide;

/// How much of the mean of gradients stays with each step.
const KEEP_MEAN: f64 = 0.9;
/// How much of the mean of their squares stays.
const KEEP_SQUARE: f64 = 0.999;
/// What keeps a number that has hardly moved from jumping.
const SMALLEST: f32 = 1e-5;

/// What Adam remembers between steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    steps: u64,
    means: Vec<f32>,
    squares: Vec<f32>,
}

impl Adam {
    /// One that has taken no step along this many numbers.
    pub fn new(width: usize) -> Self {
        Adam { steps: 0, means: vec![0.0; width], squares: vec![0.0; width] }
    }

    /// Numbers that it moves.
    pub fn width(&self) -> usize {
        self.means.len()
    }

    /// Takes a step against the gradient; each number moves by its own share of the rate.
    ///
    /// # Panics
    /// Where the values, the gradient or the shares are not as many as the numbers that it moves.
    pub fn step(&mut self, values: &mut [f32], gradient: &[f32], rate: f32, pace: &[f32]) {
        let width = self.width();
        let given = [values.len(), gradient.len(), pace.len()];
        assert!(given == [width; 3], "values, gradient and shares {given:?}: Adam moves {width}");
        self.steps += 1;
        // Means begin at 0: what they lack is what is left of that beginning.
        let rate = (f64::from(rate) / (1.0 - power(KEEP_MEAN, self.steps))) as f32;
        let spread = (1.0 - power(KEEP_SQUARE, self.steps)).sqrt() as f32;
        let (keep, take) = (KEEP_MEAN as f32, (1.0 - KEEP_MEAN) as f32);
        let (keep_square, take_square) = (KEEP_SQUARE as f32, (1.0 - KEEP_SQUARE) as f32);
        let moments = self.means.iter_mut().zip(&mut self.squares);
        let numbers = values.iter_mut().zip(gradient).zip(moments).zip(pace);
        wide!({
            for (((value, &slope), (mean, square)), pace) in numbers {
                *mean = keep * *mean + take * slope;
                *square = keep_square * *square + take_square * slope * slope;
                *value -= pace * rate * *mean / (square.sqrt() / spread + SMALLEST);
            }
        });
    }
}

/// Scales a gradient down where it is longer than the longest allowed; returns how long it was.
pub fn clip(gradient: &mut [f32], longest: f32) -> f32 {
    // Sums side by side: one sum waits for itself at every number.
    let mut squares = [0.0; 8];
    for slopes in gradient.chunks(squares.len()) {
        squares.iter_mut().zip(slopes).for_each(|(sum, &x)| *sum += f64::from(x) * f64::from(x));
    }
    let length = squares.iter().sum::<f64>().sqrt();
    if length > f64::from(longest) {
        let scale = (f64::from(longest) / length) as f32;
        gradient.iter_mut().for_each(|slope| *slope *= scale);
    }
    length as f32
}

/// A power by squaring: the same bits everywhere, which `powi` does not promise.
fn power(mut base: f64, mut times: u64) -> f64 {
    let mut product = 1.0;
    while times > 0 {
        if times & 1 == 1 {
            product *= base;
        }
        base *= base;
        times >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_rate_in_the_direction_of_each_slope() {
        // mean / (1 − 0.9) = slope, √(square / (1 − 0.999)) = |slope|: 0.1 · 2 / (2 + 1e-5), and nothing for 0
        let (mut adam, mut values) = (Adam::new(3), vec![1.0, 1.0, 1.0]);
        adam.step(&mut values, &[2.0, -2.0, 0.0], 0.1, &[1.0; 3]);
        let moved = 0.1 * 2.0 / (2.0 + 1e-5);
        for (value, expected) in values.iter().zip([1.0 - moved, 1.0 + moved, 1.0]) {
            assert!((value - expected).abs() < 1e-6, "{value} and not {expected}");
        }
        assert_eq!(adam.steps, 1);
    }

    #[test]
    fn the_second_step_weighs_both_slopes() {
        // Slopes 1, then 3: mean 0.9·0.1 + 0.1·3 = 0.39, square 0.999·0.001 + 0.001·9 = 0.009999;
        // 0.1 · (0.39 / 0.19) / (√(0.009999 / 0.001999) + 1e-5) = 0.0917777
        let (mut adam, mut values) = (Adam::new(1), vec![0.0]);
        adam.step(&mut values, &[1.0], 0.1, &[1.0; 1]);
        let before = values[0];
        adam.step(&mut values, &[3.0], 0.1, &[1.0; 1]);
        assert!((before - values[0] - 0.091_777_7).abs() < 1e-6, "{}", before - values[0]);
    }

    #[test]
    fn five_clipped_steps_end_where_those_of_pytorch_do() {
        // torch 2.9.0: optim.Adam(eps=1e-5) after nn.utils.clip_grad_norm_(…, 1.0).
        let steps = [
            (1e-3, [0.1, -2.0, 1e-4, 0.0], 2.002_498, [0.499_000_2, -0.999, 1.999_166_8, 0.001]),
            (
                1e-3,
                [-0.3, 1.5, 2e-4, 1e-6],
                1.529_706,
                [0.499_556_03, -0.999_043_46, 1.998_318_4, 0.000_967_114_23],
            ),
            (
                5e-4,
                [0.25, 0.5, -5e-3, -1e-2],
                0.559_128_8,
                [0.499_442_88, -0.999_166_8, 1.998_626_6, 0.001_285_950_2],
            ),
            (
                2e-3,
                [0.0, -0.125, 3.0, 0.5],
                3.043_949,
                [0.499_072_07, -0.999_538_6, 1.997_469_5, 0.000_189_532_18],
            ),
            (
                1e-2,
                [7.0, 1e-3, -0.2, 0.04],
                7.002_971,
                [0.493_399_4, -1.001_110_4, 1.992_739_7, -0.004_630_515_4],
            ),
        ];
        let (mut adam, mut values) = (Adam::new(4), vec![0.5, -1.0, 2.0, 0.001]);
        for (rate, mut gradient, length, expected) in steps {
            let long: f32 = clip(&mut gradient, 1.0);
            assert!((long / length - 1.0).abs() < 1e-6, "{long} and not {length}");
            adam.step(&mut values, &gradient, rate, &[1.0; 4]);
            for (value, expected) in values.iter().zip(expected) {
                assert!((value - expected).abs() < 3e-7, "{values:?} and not {expected}");
            }
        }
    }

    #[test]
    fn a_state_that_was_put_away_goes_on_with_the_same_bits() {
        let (mut adam, mut values) = (Adam::new(2), vec![0.3, -0.7]);
        adam.step(&mut values, &[0.1, 0.02], 0.01, &[1.0; 2]);
        let text = serde_json::to_string(&adam).expect("a state is plain numbers");
        let mut again: Adam = serde_json::from_str(&text).expect("what was written");
        assert_eq!(again, adam);
        let mut others = values.clone();
        adam.step(&mut values, &[-0.3, 0.5], 0.02, &[1.0; 2]);
        again.step(&mut others, &[-0.3, 0.5], 0.02, &[1.0; 2]);
        assert_eq!(values, others);
    }

    #[test]
    fn a_gradient_is_scaled_as_a_whole_and_only_when_too_long() {
        let mut gradient = [3.0, -4.0];
        assert_eq!(clip(&mut gradient, 10.0), 5.0);
        assert_eq!(gradient, [3.0, -4.0]);
        assert_eq!(clip(&mut gradient, 2.5), 5.0);
        assert_eq!(gradient, [1.5, -2.0]);
    }

    #[test]
    fn long_rows_do_not_lose_their_small_numbers() {
        // Squares of 1e-4 beside one of 1e6: in 32 bits each would vanish.
        let mut gradient = vec![1e-2; 100_000];
        gradient.insert(0, 1e3);
        let length = clip(&mut gradient, f32::INFINITY);
        assert_eq!(length, (1e6f64 + 10.0).sqrt() as f32);
    }

    #[test]
    #[should_panic(expected = "values, gradient and shares [2, 1, 2]: Adam moves 2")]
    fn widths_must_agree() {
        Adam::new(2).step(&mut [0.0; 2], &[0.0], 0.1, &[1.0; 2]);
    }
}
