//! For how many calls a clock runs, and what it reads.

use dynamiccl_env::measure::Clock;
use dynamiccl_spec::Collective;

/// Calls between two moments: enough that the clock's own error does not count.
pub fn calls(clock: Clock, collective: Collective, bytes: u64) -> u32 {
    let few: u64 = match bytes {
        0..=65_536 => 8,
        65_537..=1_048_576 => 4,
        _ => 2,
    };
    // Buffers that were empty take a part of what a root sends, whatever the others do; only full ones show how fast they are.
    let filling = if clock.is_drained() && collective.is_rooted() { FILLING / bytes.max(1) } else { 0 };
    filling.clamp(few, MOST_CALLS) as u32
}

/// The time of a call, given that of every rank.
pub fn read(clock: Clock, ranks: impl IntoIterator<Item = f64>) -> f64 {
    let mut ranks = ranks.into_iter();
    match clock {
        Clock::First => ranks.next().unwrap_or(f64::NAN),
        Clock::Slowest => ranks.reduce(f64::max).unwrap_or(f64::NAN),
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
        assert_eq!(read(Clock::First, ranks), 20.0);
        assert_eq!(read(Clock::Slowest, ranks), 60.0);
        assert!(read(Clock::Slowest, []).is_nan());
    }

    #[test]
    fn the_first_ones_clock_runs_for_as_many_calls_as_in_published_sweeps() {
        let counts = |clock: Clock, collective| {
            [1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24]
                .map(|bytes| calls(clock, collective, bytes))
        };
        for collective in Collective::TUNED {
            assert_eq!(counts(Clock::First, collective), [8, 8, 4, 4, 2, 2]);
        }
        assert_eq!(counts(Clock::Slowest, Collective::AllReduce), [8, 8, 4, 4, 2, 2]);
        assert_eq!(counts(Clock::Slowest, Collective::Broadcast), [64, 64, 64, 32, 8, 2], "buffers are full");
    }
}
