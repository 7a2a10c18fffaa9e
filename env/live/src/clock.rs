//! Whose clock counts, whether ranks wait for each other before it starts, and for how many calls it runs.

use dynamiccl_spec::Collective;
use serde::{Deserialize, Serialize};

/// How a call is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Rank 0's, in a stream of calls that nothing interrupts, exactly as in the published sweeps. A root that only sends
    /// may be done long before anything has arrived, if the calls before have left its buffers empty.
    #[default]
    First,
    /// The slowest rank's, after all of them have waited for each other: the time until a call is done everywhere.
    Slowest,
}

impl Clock {
    /// Whether ranks wait for each other before every timing, so that nothing depends on what was called before.
    pub fn is_drained(self) -> bool {
        self == Clock::Slowest
    }

    /// Whether it shows what a root takes, which depends on what the calls before have left in its buffers, and not when
    /// such a call is done.
    pub fn stops_at_root(self, collective: Collective) -> bool {
        collective.is_rooted() && !self.is_drained()
    }

    /// Calls between two moments: enough that the clock's own error does not count.
    pub fn calls(self, collective: Collective, bytes: u64) -> u32 {
        let few: u64 = match bytes {
            0..=65_536 => 8,
            65_537..=1_048_576 => 4,
            _ => 2,
        };
        // Buffers that were empty take a part of what a root sends, whatever the others do; only full ones show how fast they are.
        let filling = if self.is_drained() && collective.is_rooted() { FILLING / bytes.max(1) } else { 0 };
        filling.clamp(few, MOST_CALLS) as u32
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

/// More than what lies between a root and the last rank can hold.
const FILLING: u64 = 32 << 20;
/// Most calls between two moments.
const MOST_CALLS: u64 = 64;

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
    fn the_first_ones_clock_runs_for_as_many_calls_as_in_published_sweeps() {
        let calls = |clock: Clock, collective| {
            [1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24].map(|bytes| clock.calls(collective, bytes))
        };
        for collective in Collective::TUNED {
            assert_eq!(calls(Clock::First, collective), [8, 8, 4, 4, 2, 2]);
        }
        assert_eq!(calls(Clock::Slowest, Collective::AllReduce), [8, 8, 4, 4, 2, 2]);
        assert_eq!(calls(Clock::Slowest, Collective::Broadcast), [64, 64, 64, 32, 8, 2], "buffers are full");
    }
}
