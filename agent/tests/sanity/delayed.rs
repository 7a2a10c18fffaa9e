//! A choice pays when the job ends, and calls in between change nothing: only credit that travels back
//! over calls finds it.

use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::task::{CUES, Rules, Shown};
use crate::train::{config, right_after_training};

/// The first choice is paid for with the last call.
#[derive(Debug, Clone, Default)]
pub struct Late {
    cue: usize,
    chosen: usize,
}

impl Rules for Late {
    const CALLS: u32 = 4;

    fn show(&mut self, call: u32, rng: &mut ChaCha8Rng, shown: &mut Shown) {
        if call == 0 {
            self.cue = rng.random_range(0..CUES);
            shown.cue(self.cue);
        }
        shown.allow(Head::Channels, (1 << CUES) - 1);
    }

    fn judge(&mut self, call: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>) {
        if call == 0 {
            self.chosen = usize::from(choice[Head::Channels as usize]);
            return (0.0, Some(self.chosen == self.cue));
        }
        let paid = call + 1 == Self::CALLS && self.chosen != self.cue;
        (if paid { -1.0 } else { 0.0 }, None)
    }
}

fn right_with(discount: f32) -> f64 {
    let rules = Late::default();
    let mut config = config();
    config.rollout.discount = discount;
    right_after_training(&rules, &config)
}

#[test]
fn credit_travels_back_over_calls() {
    let right = right_with(0.9);
    assert!(right >= 0.95, "{right}");
}

#[test]
fn without_a_future_there_is_no_credit() {
    let right = right_with(0.0);
    assert!(right <= 0.6, "{right}");
}
