//! A measured time against what the policy expected, in place of NCCL's prediction.
//!
//! A history row says how far a time was from NCCL's prediction. Most of that is known before: it is what the
//! estimates say of a job that has just begun. What is worth remembering is the rest, so the LSTM sees that.

use std::ops::Range;

use dynamiccl_spec::Path;
use dynamiccl_spec::features::TIME_SCALE;
use dynamiccl_spec::features::catalogue::slot;

use super::heads::{Estimates, FARTHEST};

/// Where in a history row the numbers lie that this is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surprise {
    measured: usize,
    time: usize,
    pair: Range<usize>,
    /// Whether NCCL's pair carried the call: what another path takes says nothing of a pair.
    by_nccl: usize,
}

impl Default for Surprise {
    fn default() -> Self {
        let slot = |name| slot(name).expect("a feature of this encoding");
        Surprise {
            measured: slot("has_feedback").start,
            time: slot("last_time").start,
            pair: slot("last_pair"),
            by_nccl: slot("last_path").start + Path::Nccl.id(),
        }
    }
}

impl Surprise {
    /// Whether a history row says what a call took.
    pub fn measured(&self, history: &[f32]) -> bool {
        history[self.measured] == 1.0
    }

    /// Takes what was expected of a call from what the history row says of its time.
    pub fn put(&self, estimates: &Estimates, history: &mut [f32]) {
        let ran = history[self.pair.clone()].iter().position(|&x| x == 1.0);
        let by_nccl = history[self.by_nccl] == 1.0;
        if let Some(pair) = ran.filter(|_| by_nccl && self.measured(history)) {
            let expected = estimates.0[pair];
            let expected = if expected.is_nan() { 0.0 } else { expected.clamp(-FARTHEST, FARTHEST) };
            history[self.time] -= expected / TIME_SCALE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::features::HISTORY_WIDTH;
    use dynamiccl_spec::ids::PAIRS;

    #[test]
    fn only_a_measured_time_is_compared_and_only_with_its_own_pair() {
        let surprise = Surprise::default();
        let mut estimates = Estimates([f32::NAN; PAIRS]);
        estimates.0[4] = 0.4;
        let mut row = [0.0; HISTORY_WIDTH];
        row[surprise.by_nccl] = 1.0;
        row[surprise.pair.start + 4] = 1.0;
        row[surprise.time] = 0.1;
        let mut unmeasured = row;
        surprise.put(&estimates, &mut unmeasured);
        assert_eq!(unmeasured, row);
        row[surprise.measured] = 1.0;
        surprise.put(&estimates, &mut row);
        assert!((row[surprise.time] - 0.05).abs() < 1e-6);
        let mut elsewhere = row;
        elsewhere[surprise.by_nccl] = 0.0;
        let before = elsewhere;
        surprise.put(&estimates, &mut elsewhere);
        assert_eq!(elsewhere, before);
        estimates.0[4] = f32::NAN;
        let before = row;
        surprise.put(&estimates, &mut row);
        assert_eq!(row, before);
    }
}
