//! Made-up policies and calls, by which it is shown that a build decides as every other build does.
//!
//! Weights and calls are drawn at random, as wild as they may come: they have nothing to do with a
//! trained policy or a real job. What counts is that every head varies and that the fingerprint of all
//! decisions is one number, which tests and scripts compare between builds, CPUs and modes.

mod calls;
mod weights;

pub use calls::Call;
pub use weights::weights;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use dynamiccl_spec::fnv::Fnv;
use dynamiccl_spec::{Choice, Decision, Pair, Reason, Tuner};

use crate::guard::Guard;
use crate::network::Shape;
use crate::policy::{Policy, PolicyTuner};
use crate::random::Random;

/// Of so many calls one goes to a tuner that refreshes its memory, which takes its time.
const REMEMBERED: usize = 8;
/// Calls between refreshes.
const REFRESH: NonZeroUsize = NonZeroUsize::new(5).expect("not 0");
/// Calls of a job.
const JOB: usize = 4096;
/// Calls in a row on one communicator.
const ROW: usize = 16;

/// What came of many decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// Decisions.
    pub decisions: usize,
    /// Of these, the policy's own.
    pub chosen: usize,
    /// Different knobs among them.
    pub distinct: usize,
    /// The fingerprint of all of them: knobs, reasons and the bits of the estimated times
    /// and spreads.
    pub value: u64,
}

/// Decides this many made-up calls by a made-up policy.
pub fn digest(seed: u64, decisions: usize) -> Digest {
    let policy = Arc::new(policy(seed));
    let mut tuners = [None, Some(REFRESH)].map(|refresh| PolicyTuner::new(Arc::clone(&policy), refresh));
    let mut random = Random::of(seed, 1);
    let mut call = Call::draw(&mut random);
    let (mut fingerprint, mut distinct, mut chosen) = (Fnv::new(), BTreeSet::new(), 0);
    for number in 0..decisions {
        if number % JOB == 0 {
            tuners.iter_mut().for_each(Tuner::begin);
        }
        if number % ROW == 0 {
            call = Call::draw(&mut random);
        } else {
            call.next(&mut random);
        }
        let decision = tuners[usize::from(number % REMEMBERED == 0)].answer(&call.query());
        let choice = choice(&decision);
        chosen += usize::from(decision.reason == Reason::Policy);
        distinct.insert(choice.0);
        fingerprint.bytes(&choice.0);
        fingerprint.byte(reason(decision.reason));
        fingerprint.numbers(decision.micros.0.as_flattened());
        fingerprint.numbers(decision.spread.as_slice());
    }
    Digest { decisions, chosen, distinct: distinct.len(), value: fingerprint.value() }
}

/// A made-up policy of the usual shape. Its guard lets some decisions through, by their gain and its spread.
pub fn policy(seed: u64) -> Policy {
    Policy::new("made-up", &weights(Shape::default(), seed), Guard::Spreads(0.3), seed)
}

fn choice(decision: &Decision) -> Choice {
    Choice::of(&decision.knobs, Pair::from_index(0).expect("the first pair"))
}

fn reason(reason: Reason) -> u8 {
    match reason {
        Reason::Policy => 0,
        Reason::Gate(gate) => 1 + gate as u8,
        Reason::Fallback(why) => 100 + why as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every machine that runs this shows that it decides as every other one does. A change of the network,
    /// of the encoding or of what is drawn moves it.
    #[test]
    fn decisions_are_the_same_on_every_machine() {
        let digest = digest(1, 20_000);
        assert!(digest.distinct > 500 && digest.chosen > 5_000, "{digest:?}");
        assert_eq!(format!("{:016x}", digest.value), "83f261b7d99e08eb");
    }

    #[test]
    fn another_policy_decides_differently() {
        assert_ne!(digest(1, 500).value, digest(2, 500).value);
    }
}
