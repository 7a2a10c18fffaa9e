//! A seed decides every bit: not the number of threads, not what was interrupted in between.

use crate::identity::Identity;
use crate::memory::{Cue, Recall};
use crate::task::Rules;
use crate::train::{beginner, config, train};

fn bits<R: Rules>(rules: &R, threads: usize) -> Vec<u32> {
    let mut trainer = beginner(rules, &config(), threads);
    train(&mut trainer, 0..3, 3);
    trainer.params().values().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn any_number_of_threads_ends_with_the_same_bits() {
    let rules = Recall::new(Cue::Context, 1);
    let one = bits(&rules, 1);
    assert_eq!(one, bits(&rules, 2), "two threads");
    assert_eq!(one, bits(&rules, 3), "three threads");
    assert_eq!(one, bits(&rules, 1), "once more");
    assert_ne!(one, bits(&Identity::default(), 1), "another task");
}
