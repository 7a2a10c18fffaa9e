//! Calls that reach no tuner: what happens in them is nobody's merit.

use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::task::{CUES, Rules, Shown};
use crate::train::{beginner, config, right_after_training, train};

/// Some calls are gated: they pay or cost at random, five times what the others do.
#[derive(Debug, Clone)]
pub struct Gated {
    /// Share of gated calls.
    pub share: f32,
    cue: usize,
    luck: Option<f64>,
}

impl Gated {
    /// A task with this share of gated calls.
    pub fn new(share: f32) -> Self {
        Gated { share, cue: 0, luck: None }
    }
}

impl Rules for Gated {
    const CALLS: u32 = 5;
    const TERMINATES: bool = false;

    fn show(&mut self, _: u32, rng: &mut ChaCha8Rng, shown: &mut Shown) {
        self.cue = rng.random_range(0..CUES);
        let gated = rng.random::<f32>() < self.share;
        self.luck = gated.then(|| 10.0 * rng.random::<f64>() - 5.0);
        shown.cue(self.cue);
        if !gated {
            shown.allow(Head::Channels, (1 << CUES) - 1);
        }
    }

    fn judge(&mut self, _: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>) {
        let right = usize::from(choice[Head::Channels as usize]) == self.cue;
        match self.luck {
            Some(luck) => (luck, None),
            None => (if right { 0.0 } else { -1.0 }, Some(right)),
        }
    }
}

#[test]
fn luck_in_gated_calls_is_not_taken_for_merit() {
    let rules = Gated::new(0.5);
    let mut config = config();
    config.rollout.discount = 0.0;
    let right = right_after_training(&rules, &config);
    assert!(right >= 0.95, "{right}");
}

#[test]
fn where_every_call_is_gated_only_the_critic_learns() {
    let (rules, config) = (Gated::new(1.0), config());
    let mut trainer = beginner(&rules, &config, 1);
    let before = trainer.params().clone();
    train(&mut trainer, 0..3, 3);
    let (before, after) = (before.values(), trainer.params().values());
    let critic = trainer.params().layout().tensor("critic.first.weight").range.start;
    assert_eq!(before[..critic], after[..critic]);
    assert_ne!(before[critic..], after[critic..]);
}
