//! Two-sided CUSUM over normalised residuals, and how far the level has moved when it crosses.
//!
//! A run is what came since the side that crosses left zero: the calls after the change, as far as
//! anyone can tell.

/// Both sides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cusum {
    up: Side,
    down: Side,
    /// The last three residuals, as they were.
    last: [f64; 3],
}

/// One side: how far it has come, over how many calls, and their residuals' sum.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    score: f64,
    calls: f64,
    sum: f64,
}

/// A change of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// How far.
    pub by: f64,
    /// Variance of that, in squared spreads.
    pub variance: f64,
}

/// Variance of the median of three.
const MEDIAN_VARIANCE: f64 = 0.45;

impl Cusum {
    /// Takes in a residual: `score` in spreads and clipped, `clipped` the same as ln time, `raw` as it was.
    pub fn push(&mut self, slack: f64, score: f64, clipped: f64, raw: f64) {
        self.up.push(score - slack, clipped);
        self.down.push(-score - slack, clipped);
        self.last = [self.last[1], self.last[2], raw];
    }

    /// The larger score, with its sign.
    pub fn score(&self) -> f64 {
        larger(self.up.score, self.down.score).copysign(self.up.score - self.down.score)
    }

    /// The shift, if a side has reached the threshold; then both start again. A shift beyond `visible` shows
    /// in every single call: the last three then say it better than a run that may have begun before it,
    /// and of which only clipped residuals are kept.
    pub fn take(&mut self, threshold: f64, visible: f64) -> Option<Shift> {
        if larger(self.up.score, self.down.score) < threshold {
            return None;
        }
        let side = if self.up.score >= self.down.score { self.up } else { self.down };
        let late = median(self.last);
        let shift = if late.abs() >= visible {
            Shift { by: late, variance: MEDIAN_VARIANCE }
        } else {
            Shift { by: side.sum / side.calls, variance: 1.0 / side.calls }
        };
        *self = Cusum::default();
        Some(shift)
    }
}

impl Side {
    fn push(&mut self, step: f64, residual: f64) {
        let score = self.score + step;
        // A factor and not a branch: which way noise goes cannot be predicted.
        let runs = if score > 0.0 { 1.0 } else { 0.0 };
        *self =
            Side { score: score * runs, calls: (self.calls + 1.0) * runs, sum: (self.sum + residual) * runs };
    }
}

/// The larger of two numbers that are never NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Of three, so that one outlier does not move it.
fn median([a, b, c]: [f64; 3]) -> f64 {
    a.max(b).min(a.min(b).max(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(cusum: &mut Cusum, residuals: &[f64]) -> Option<Shift> {
        residuals.iter().find_map(|&r| {
            cusum.push(0.5, r.clamp(-3.0, 3.0), r.clamp(-3.0, 3.0), r);
            cusum.take(8.0, 1.5)
        })
    }

    #[test]
    fn scores_add_up_beyond_the_slack_and_never_fall_below_zero() {
        let mut cusum = Cusum::default();
        assert_eq!(feed(&mut cusum, &[0.4, 1.5, 1.5]), None);
        assert_eq!(cusum.score(), 2.0);
        assert_eq!(feed(&mut cusum, &[-2.5]), None);
        assert_eq!(cusum.score(), -2.0);
    }

    #[test]
    fn a_shift_is_established_in_either_direction_and_starts_again() {
        for sign in [1.0, -1.0] {
            let mut cusum = Cusum::default();
            let shift = feed(&mut cusum, &[sign; 20]).unwrap();
            assert_eq!((shift.by, shift.variance), (sign, 1.0 / 16.0));
            assert_eq!(cusum.score(), 0.0);
        }
    }

    #[test]
    fn a_large_shift_is_measured_beyond_the_clip_and_beside_an_outlier() {
        let shift = feed(&mut Cusum::default(), &[10.0, 10.0, 90.0, 10.0]).unwrap();
        assert_eq!(shift.by, 10.0);
    }

    #[test]
    fn a_run_that_began_before_the_shift_does_not_dilute_it() {
        let calls = [[0.6; 20].as_slice(), &[9.0; 4]].concat();
        assert_eq!(feed(&mut Cusum::default(), &calls).unwrap().by, 9.0);
    }

    #[test]
    fn outliers_among_ordinary_calls_establish_nothing() {
        let calls = [50.0, 0.3, -0.4, 0.1, -0.2, 0.5, 0.0, -50.0, 0.2, 0.1].repeat(40);
        assert_eq!(feed(&mut Cusum::default(), &calls), None);
    }
}
