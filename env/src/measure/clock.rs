//! Whose clock a measurement went by, and whether ranks waited for each other before it started.

use dynamiccl_spec::Collective;
use serde::{Deserialize, Serialize};

/// How a call was timed.
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
}
