//! What can be set about a trigger, with the values that `docs/trigger.md` was measured with.

/// Settings of a [`Trigger`](super::Trigger).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerConfig {
    /// Shifts of less than this many spreads are let pass (CUSUM's slack).
    pub slack: f64,
    /// Accumulated spreads beyond the slack that establish a change (CUSUM's threshold).
    pub threshold: f64,
    /// No call counts for more than this many spreads: a single outlier establishes nothing.
    pub clip: f64,
    /// Calls of a kind that only teach, before they can establish a change.
    pub burn_in: u32,
    /// Spread of ln times that is assumed before there is any call.
    pub spread: f64,
    /// No spread is taken to be smaller.
    pub least_spread: f64,
    /// How fast the spread follows, per call.
    pub spread_rate: f64,
    /// Variance that the level gains per call, in squared spreads: how fast the expectation follows drift.
    pub drift: f64,
    /// What one change of knobs costs, in times of the call (the reward's switch weight).
    pub switch_cost: f64,
    /// Share of a shift that other knobs are taken to win back.
    pub recoverable: f64,
    /// Calls of a kind between changes that are assumed before any change is seen.
    pub calls_between_changes: f64,
}

impl Default for TriggerConfig {
    fn default() -> Self {
        TriggerConfig {
            slack: 0.35,
            threshold: 9.0,
            clip: 3.0,
            burn_in: 8,
            spread: 0.1,
            least_spread: 0.01,
            spread_rate: 1.0 / 64.0,
            drift: 1.0 / 4096.0,
            switch_cost: 0.05,
            recoverable: 0.1,
            calls_between_changes: 200.0,
        }
    }
}
