//! When an established change is worth deciding again.
//!
//! Staying with knobs that were chosen for the old level loses, per call, the part of the shift that
//! other knobs would win back; it loses that until the next change. So: decide again where
//! recoverable × |shift| × expected calls until the next change > cost of a switch, all in times of the call.
//! Where changes come so often that a new choice would be outdated at once, it is not worth it.

use super::config::TriggerConfig;
use super::cusum::Shift;

/// Changes that the assumed time between changes is worth.
const PRIOR_CHANGES: f64 = 1.0;

/// How often changes come on a communicator, in calls.
#[derive(Debug, Clone, Copy)]
pub struct Rhythm {
    calls: f64,
    changes: f64,
}

impl Rhythm {
    /// As the settings assume.
    pub fn new(config: &TriggerConfig) -> Self {
        Rhythm { calls: config.calls_between_changes * PRIOR_CHANGES, changes: PRIOR_CHANGES }
    }

    /// Counts a call, and says whether its change, if it established one, is worth a new decision.
    pub fn push(&mut self, config: &TriggerConfig, change: Option<Shift>) -> bool {
        self.calls += 1.0;
        let Some(shift) = change else { return false };
        self.changes += 1.0;
        let left = self.calls / self.changes;
        config.recoverable * shift.by.abs() * left > config.switch_cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIFT: Option<Shift> = Some(Shift { by: 0.2, variance: 0.1 });

    #[test]
    fn rare_changes_are_worth_a_decision_and_incessant_ones_are_not() {
        let config = TriggerConfig { switch_cost: 0.5, ..TriggerConfig::default() };
        let mut rhythm = Rhythm::new(&config);
        assert!(!rhythm.push(&config, None));
        assert!(rhythm.push(&config, SHIFT));
        let mut worth = Vec::new();
        (0..40).for_each(|_| worth.push(rhythm.push(&config, SHIFT)));
        assert!(!worth[39], "a change per call");
    }

    #[test]
    fn a_dear_switch_needs_a_large_shift() {
        let config = TriggerConfig { switch_cost: 3.0, ..TriggerConfig::default() };
        assert!(!Rhythm::new(&config).push(&config, SHIFT));
        assert!(Rhythm::new(&config).push(&config, Some(Shift { by: -0.7, variance: 0.1 })));
    }
}
