//! Whatever the weights and the call, what is decided may be decided; and the guard only takes away.

use std::sync::Arc;

use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::{Shape, Weights};
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_policies::probe::{Call, weights};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::{Choice, CostTable, Fallback, Reason};

const SHAPE: Shape = Shape { embedding: 16, memory: 16, expert: 16, resource: 8 };

/// Weights so large that sums leave the numbers.
fn absurd(seed: u64) -> Weights {
    let mut weights = weights(SHAPE, seed);
    for (name, _) in SHAPE.tensors() {
        weights.get_mut(name).unwrap().iter_mut().for_each(|x| *x *= 3e37);
    }
    weights
}

fn only_what_is_allowed(weights: &Weights, seed: u64) {
    let policy = Policy::new("any", weights, Guard::Off, seed);
    let mut tuner = PolicyTuner::new(Arc::new(policy), std::num::NonZeroUsize::new(3));
    let mut random = Random::new(seed);
    for number in 0..3000 {
        let call = Call::draw(&mut random);
        let query = call.query();
        let decision = tuner.answer(&query);
        if decision.reason == Reason::Policy {
            let choice = Choice::of(&decision.knobs, query.gated.own.unwrap());
            assert_eq!(query.gated.mask.refuses(&choice), None, "call {number}: {decision:?}");
        } else {
            assert_eq!(decision.knobs, query.own());
        }
        for (ours, nccls) in decision.micros.0.as_flattened().iter().zip(query.call.table.0.as_flattened()) {
            let available = *nccls >= 0.0 && nccls.is_finite() && decision.reason == Reason::Policy;
            let right =
                if available { *ours > 0.0 && ours.is_finite() } else { ours.to_bits() == nccls.to_bits() };
            assert!(right, "call {number}: {ours} for {nccls}");
        }
    }
}

#[test]
fn a_decision_is_always_one_that_may_be_made() {
    (0..5).for_each(|seed| only_what_is_allowed(&weights(SHAPE, seed), seed));
}

#[test]
fn weights_beyond_all_measure_still_decide_what_may_be_decided() {
    (0..5).for_each(|seed| only_what_is_allowed(&absurd(seed), seed));
}

#[test]
fn a_wider_margin_leaves_more_calls_to_nccl() {
    let weights = weights(SHAPE, 8);
    let mut tuners = [-1e9, 0.0, 0.5, 1.0, 2.0, 1e9]
        .map(Guard::Spreads)
        .map(|guard| PolicyTuner::new(Arc::new(Policy::new("any", &weights, guard, 0)), None));
    let (mut random, mut unsure) = (Random::new(8), [0; 6]);
    for _ in 0..2000 {
        let call = Call::draw(&mut random);
        let query = call.query();
        let mut left = tuners.each_mut().map(|tuner| tuner.answer(&query));
        let wish = left[0];
        for (at, decision) in left.iter_mut().enumerate() {
            let fell_back = decision.reason == Reason::Fallback(Fallback::Unsure);
            unsure[at] += usize::from(fell_back);
            assert_eq!(decision.knobs, if fell_back { query.own() } else { wish.knobs });
            let bits = |table: &CostTable| table.0.as_flattened().iter().map(|us| us.to_bits()).collect();
            let [said, nccls]: [Vec<u32>; 2] = [bits(&decision.micros), bits(&query.call.table)];
            assert!(!fell_back || said == nccls, "NCCL's pick stays only with NCCL's times");
            assert!(!fell_back || wish.knobs != query.own(), "NCCL's own pick needs no guard");
        }
        let fell_back = left.map(|decision| decision.reason == Reason::Fallback(Fallback::Unsure));
        assert!(fell_back.is_sorted(), "{fell_back:?}");
    }
    assert!(unsure[0] == 0 && unsure.is_sorted() && unsure[1] > 100 && unsure[5] > unsure[1], "{unsure:?}");
}
