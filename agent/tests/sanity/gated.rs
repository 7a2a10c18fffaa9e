//! Calls that reach no tuner: what happens in them is nobody's merit.

use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::task::{CUES, Rules, Shown};

/// Some calls are gated, though their masks allow a choice; they pay for the opposite of what is right.
#[derive(Debug, Clone)]
pub struct Gated {
    /// Share of gated calls.
    pub share: f32,
    cue: usize,
    gated: bool,
}

impl Gated {
    /// A task with this share of gated calls.
    pub fn new(share: f32) -> Self {
        Gated { share, cue: 0, gated: false }
    }
}

impl Rules for Gated {
    const CALLS: u32 = 5;
    const TERMINATES: bool = false;

    fn show(&mut self, _: u32, rng: &mut ChaCha8Rng, shown: &mut Shown) {
        self.cue = rng.random_range(0..CUES);
        self.gated = rng.random::<f32>() < self.share;
        shown.cue(self.cue);
        shown.allow(Head::Channels, (1 << CUES) - 1);
        if self.gated {
            shown.gate();
        }
    }

    fn judge(&mut self, _: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>) {
        let right = usize::from(choice[Head::Channels as usize]) == self.cue;
        let pays = right != self.gated;
        (if pays { 0.0 } else { -1.0 }, (!self.gated).then_some(right))
    }
}
