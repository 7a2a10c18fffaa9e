//! What is right was said once, when the job began: only a memory that is stored with the rollout, begins
//! anew with each episode and is brought to decisions can tell.

use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::task::{CUES, Rules, Shown};
use crate::train::{config, right_after_training};

/// Where the cue is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cue {
    /// In the context of the first call.
    Context,
    /// In the history row that is seen with the second.
    History,
}

/// The cue is seen once; every later call has the same right choice, and shows nothing.
#[derive(Debug, Clone)]
pub struct Recall {
    /// Where the cue is shown.
    pub shown: Cue,
    /// Calls before the first that must be right.
    pub wait: u32,
    cue: usize,
}

impl Recall {
    /// One that decides after a few calls.
    pub fn new(shown: Cue, wait: u32) -> Self {
        Recall { shown, wait, cue: 0 }
    }
}

impl Rules for Recall {
    // No divisor of the steps of a rollout: episodes lie across its borders.
    const CALLS: u32 = 7;

    fn show(&mut self, call: u32, rng: &mut ChaCha8Rng, shown: &mut Shown) {
        match (self.shown, call) {
            (_, 0) => self.cue = rng.random_range(0..CUES),
            (Cue::History, 1) => shown.past_cue(self.cue),
            _ => {}
        }
        if (self.shown, call) == (Cue::Context, 0) {
            shown.cue(self.cue);
        }
        if call >= self.wait {
            shown.allow(Head::Channels, (1 << CUES) - 1);
        }
    }

    fn judge(&mut self, call: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>) {
        if call < self.wait {
            return (0.0, None);
        }
        let right = usize::from(choice[Head::Channels as usize]) == self.cue;
        (if right { 0.0 } else { -1.0 }, Some(right))
    }
}

#[test]
fn a_cue_of_the_first_call_is_remembered() {
    let (rules, config) = (Recall::new(Cue::Context, 1), config());
    let right = right_after_training(&rules, &config);
    assert!(right >= 0.95, "{right}");
}

#[test]
fn a_cue_of_a_history_row_is_remembered() {
    let (rules, config) = (Recall::new(Cue::History, 1), config());
    let right = right_after_training(&rules, &config);
    assert!(right >= 0.95, "{right}");
}

#[test]
fn without_the_lstm_nobody_can_know() {
    let rules = Recall::new(Cue::Context, 1);
    let mut config = config();
    config.without.lstm = true;
    let right = right_after_training(&rules, &config);
    assert!((0.15..0.35).contains(&right), "{right}");
}

#[test]
fn a_memory_that_is_refreshed_late_still_helps() {
    let rules = Recall::new(Cue::Context, 3);
    let mut config = config();
    config.rollout.refresh = 3;
    let right = right_after_training(&rules, &config);
    assert!(right >= 0.95, "{right}");
}
