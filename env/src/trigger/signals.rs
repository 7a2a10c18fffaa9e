//! What the trigger says about a call.

use dynamiccl_spec::features::Feedback;

/// The signals after one measured call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signals {
    /// ln(measured µs ÷ predicted µs).
    pub ratio: f64,
    /// What it was expected to be; for a setting that was not seen before, what its kind took lately.
    pub expected: f64,
    /// CUSUM relative to its threshold, −1 to 1, with the sign of the shift.
    pub cusum: f64,
    /// Distance from the expected, in spreads; 0 where there was nothing to expect.
    pub error: f64,
    /// How far recent calls were above the best level of their kinds: x / (1 + x) of the mean log, 0 to 1.
    pub congestion: f64,
    /// The level has changed for good: this call established it.
    pub changed: bool,
    /// It has, and deciding again is worth the cost of switching.
    pub fired: bool,
}

impl From<Signals> for Feedback {
    fn from(signals: Signals) -> Self {
        let Signals { ratio, expected, cusum, error, congestion, .. } = signals;
        Feedback { ratio, expected, cusum, error, congestion }
    }
}
