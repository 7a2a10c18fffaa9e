//! Whose clock counts, and whether ranks wait for each other before it starts.

use serde::{Deserialize, Serialize};

/// How a call is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Rank 0's, in a stream of calls that nothing interrupts, as in the published sweeps. A root that only sends may
    /// be done long before anything has arrived.
    #[default]
    First,
    /// The slowest rank's, after all of them have waited for each other: the time until a call is done everywhere.
    Slowest,
}

impl Clock {
    /// Whether ranks wait for each other before every timing.
    pub fn is_drained(self) -> bool {
        self == Clock::Slowest
    }

    /// The time of a call, given that of every rank.
    pub fn read(self, ranks: impl IntoIterator<Item = f64>) -> f64 {
        let mut ranks = ranks.into_iter();
        match self {
            Clock::First => ranks.next().unwrap_or(f64::NAN),
            Clock::Slowest => ranks.reduce(f64::max).unwrap_or(f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_or_the_last_one_counts() {
        let ranks = [20.0, 60.0, 40.0];
        assert_eq!(Clock::First.read(ranks), 20.0);
        assert_eq!(Clock::Slowest.read(ranks), 60.0);
        assert!(Clock::Slowest.read([]).is_nan());
    }
}
