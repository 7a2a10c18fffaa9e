//! Whose clock counts, and whether ranks wait for each other before it starts.

use dynamiccl_spec::Collective;
use serde::{Deserialize, Serialize};

/// How a call is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Rank 0's, in a stream of calls that nothing interrupts, as in the published sweeps; roots apart. One that only sends
    /// may be done long before anything has arrived.
    #[default]
    First,
    /// The slowest rank's, after all of them have waited for each other: the time until a call is done everywhere.
    Slowest,
}

impl Clock {
    /// Whether ranks wait for each other before every timing of such a call. What a root takes depends on what its buffers
    /// hold from before, and a setting would look fast that follows one which leaves them empty: they are for all.
    pub fn is_drained(self, collective: Collective) -> bool {
        self == Clock::Slowest || collective.is_rooted()
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

    #[test]
    fn only_roots_meet_before_the_first_ones_clock_and_all_before_the_slowests() {
        let drained = |clock: Clock| Collective::TUNED.into_iter().filter(move |of| clock.is_drained(*of));
        assert!(drained(Clock::First).eq([Collective::Broadcast, Collective::Reduce]));
        assert!(drained(Clock::Slowest).eq(Collective::TUNED));
    }
}
