//! What is best is often forbidden: then the best of what is left is right, and nothing else may be tried.

use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::task::{CUES, Rules, Shown};
use crate::train::{config, right_after_training};

/// Pairs that there are in this task.
const PAIRS: u32 = 8;

/// The nearer a pair is to the one that the cue means, the better. Which may be chosen is drawn anew for
/// each call; the environment refuses all others.
#[derive(Debug, Clone, Default)]
pub struct Nearest {
    cue: usize,
    legal: u32,
}

impl Nearest {
    fn distance(&self, pair: u32) -> u32 {
        pair.abs_diff(2 * self.cue as u32)
    }
}

impl Rules for Nearest {
    const CALLS: u32 = 5;

    fn show(&mut self, _: u32, rng: &mut ChaCha8Rng, shown: &mut Shown) {
        self.cue = rng.random_range(0..CUES);
        self.legal = rng.random_range(1..1 << PAIRS);
        shown.cue(self.cue);
        shown.allow(Head::Pair, self.legal);
    }

    fn judge(&mut self, _: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>) {
        let legal = (0..PAIRS).filter(|pair| self.legal >> pair & 1 == 1);
        let least = legal.map(|pair| self.distance(pair)).min();
        let distance = self.distance(u32::from(choice[Head::Pair as usize]));
        let choice = self.legal.count_ones() > 1;
        (-0.25 * f64::from(distance), choice.then_some(Some(distance) == least))
    }
}

#[test]
fn the_best_of_what_is_left_is_learned_and_nothing_else_is_tried() {
    let (rules, config) = (Nearest::default(), config());
    let right = right_after_training(&rules, &config);
    assert!(right >= 0.95, "{right}");
}
