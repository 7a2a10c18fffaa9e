//! Every call says what is right: whoever cannot learn this has its gradient or its signs wrong.

use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::{Head, Mask};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::task::{CUES, Rules, Shown};
use crate::train::{config, right_after_training};

/// The cue of a call says which channels and which pair are right, among all that there are.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    cue: usize,
}

impl Rules for Identity {
    const CALLS: u32 = 7;

    fn show(&mut self, _: u32, rng: &mut ChaCha8Rng, shown: &mut Shown) {
        self.cue = rng.random_range(0..CUES);
        shown.cue(self.cue);
        shown.allow(Head::Pair, Mask::ALL.bits(Head::Pair));
        shown.allow(Head::Channels, Mask::ALL.bits(Head::Channels));
    }

    fn judge(&mut self, _: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>) {
        let right = [(Head::Pair, 4 * self.cue + 3), (Head::Channels, self.cue + 1)];
        let wrong = right.into_iter().filter(|&(head, index)| usize::from(choice[head as usize]) != index);
        let wrong = wrong.count();
        (-0.5 * wrong as f64, Some(wrong == 0))
    }
}

#[test]
fn what_every_call_says_is_learned() {
    let (rules, config) = (Identity::default(), config());
    let right = right_after_training(&rules, &config);
    assert!(right >= 0.95, "{right}");
}
