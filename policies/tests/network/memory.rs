//! What is remembered decides, changes only at a refresh, and the memo never shows.

use std::num::NonZeroUsize;
use std::sync::Arc;

use dynamiccl_policies::network::{Estimates, Network, Shape, Surprise};
use dynamiccl_policies::policy::PolicyTuner;
use dynamiccl_policies::probe::{Call, policy, weights};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::features::{CALL_WIDTH, Encoder, HISTORY_WIDTH, PastCall};
use dynamiccl_spec::{Decision, Knobs, Measured, Query, Tuner};

fn tuner(refresh: usize, memo: usize) -> PolicyTuner {
    PolicyTuner::with_memo(Arc::new(policy(6)), NonZeroUsize::new(refresh), memo)
}

/// Calls on two communicators, with many repetitions.
fn calls(count: usize) -> Vec<Call> {
    let mut random = Random::new(4);
    let mut known: Vec<Call> = (0..20).map(|_| Call::draw(&mut random)).collect();
    known.iter_mut().for_each(|call| call.next(&mut random));
    (0..count).map(|_| known[random.below(known.len())].clone()).collect()
}

/// The bits of a decision, as a table may hold what is no number.
fn said(decision: &Decision) -> String {
    let bits: Vec<u32> = decision.micros.0.as_flattened().iter().map(|us| us.to_bits()).collect();
    format!("{:?} {:?} {bits:?}", decision.knobs, decision.reason)
}

#[test]
fn nothing_decided_before_shows_in_a_decision() {
    for refresh in [0, 1, 7] {
        let (mut with, mut without) = (tuner(refresh, 4096), tuner(refresh, 0));
        let calls = calls(600);
        for (number, call) in calls.iter().enumerate() {
            if number == 400 {
                with.begin();
                without.begin();
            }
            // The same call on a communicator of another job is another one.
            let other = &calls[number / 2];
            let query = Query { encoder: other.query().encoder, ..call.query() };
            let [left, right] = [with.answer(&query), without.answer(&query)].map(|answer| said(&answer));
            assert_eq!(left, right, "call {number}, refresh {refresh}");
        }
        assert_eq!(with.memory(), without.memory());
    }
}

/// However long its job runs, a rank that is told no time decides as a deployed policy does.
#[test]
fn who_is_told_nothing_remembers_nothing() {
    let (mut untold, mut deployed) = (tuner(5, 64), tuner(0, 64));
    for (number, call) in calls(60).iter().enumerate() {
        let past = PastCall { feedback: None, ..*call.query().past };
        let query = Query { past: &past, ..call.query() };
        let [left, right] = [untold.answer(&query), deployed.answer(&query)].map(|answer| said(&answer));
        assert_eq!(left, right, "call {number}");
    }
    assert_eq!(untold.memory(), deployed.memory());
}

#[test]
fn memory_is_taken_in_every_so_many_calls_and_is_all_of_them() {
    const REFRESH: usize = 5;
    let (mut tuner, calls) = (tuner(REFRESH, 64), calls(23));
    let policy = policy(6);
    let network = policy.network();
    let (mut expected, mut scratch, mut job) = (network.memory(), network.scratch(), network.job_sum());
    let (mut refreshes, mut rows) = (0, Vec::new());
    let (surprise, mut prior) = (Surprise::default(), Estimates::default());
    for (number, call) in calls.iter().enumerate() {
        let query = call.query();
        if number > 0 {
            let mut history = [0.0; HISTORY_WIDTH];
            Encoder::history(query.past, &mut history);
            surprise.put(&prior, &mut history);
            rows.extend(history);
        }
        if number > 0 && number % REFRESH == 0 {
            network.refresh(&std::mem::take(&mut rows), &mut expected, &mut scratch);
            refreshes += 1;
        }
        tuner.answer(&query);
        assert_eq!(tuner.memory(), &expected, "call {number}");
        let mut context = [0.0; CALL_WIDTH];
        query.encoder.call(query.call, &mut context);
        network.sum_job(query.encoder.job(), &mut job);
        prior = network.expect(&job, &context, &mut scratch);
        rows.extend(scratch.embedding());
    }
    assert_eq!(refreshes, 4);
    assert_ne!(tuner.memory(), &network.memory());
    tuner.begin();
    assert_eq!(tuner.memory(), &network.memory());
}

/// However many are taken in at once.
#[test]
fn many_calls_are_remembered_as_one_after_the_other() {
    let policy = policy(6);
    let network = policy.network();
    let row = |call: usize| (0..network.remembered()).map(move |at| ((call * 31 + at) % 7) as f32 * 0.1);
    let calls: Vec<f32> = (0..21).flat_map(row).collect();
    let [mut at_once, mut one_by_one] = [network.memory(), network.memory()];
    let mut scratch = network.scratch();
    network.refresh(&calls, &mut at_once, &mut scratch);
    for call in calls.chunks_exact(network.remembered()) {
        network.refresh(call, &mut one_by_one, &mut scratch);
    }
    assert_eq!(at_once, one_by_one);
}

/// Calls are taken in by how far they are from what a network expects that remembers nothing, so a machine that is put
/// into a policy must not move that.
#[test]
fn a_machine_that_is_remembered_from_the_start_is_what_no_call_is_held_against() {
    let fresh = weights(Shape::default(), 6);
    let [hidden, cell] = [0.3, -0.4].map(|x| vec![x; fresh.shape().memory]);
    let mut remembering = fresh.clone();
    remembering.remember([&hidden, &cell]);
    remembering.remember([&cell, &hidden]);
    assert_eq!(remembering.trained(), fresh.trained());
    let [fresh, remembering] = [&fresh, &remembering].map(Network::new);
    assert_eq!((remembering.memory().hidden(), remembering.memory().cell()), (&cell[..], &hidden[..]));
    let (mut scratch, mut job) = (fresh.scratch(), fresh.job_sum());
    for call in calls(20) {
        let mut context = [0.0; CALL_WIDTH];
        call.query().encoder.call(call.query().call, &mut context);
        fresh.sum_job(call.query().encoder.job(), &mut job);
        let expected = fresh.expect(&job, &context, &mut scratch);
        assert_eq!(remembering.expect(&job, &context, &mut scratch), expected);
        remembering.think(&job, &context, &remembering.memory(), &mut scratch);
        assert_ne!(scratch.estimates(), expected);
    }
}

#[test]
fn what_is_remembered_changes_decisions() {
    let (mut fixed, mut refreshed) = (tuner(0, 64), tuner(1, 64));
    let calls = calls(400);
    let differing = calls.iter().filter(|call| {
        let query = call.query();
        fixed.answer(&query).knobs != refreshed.answer(&query).knobs
    });
    let differing = differing.count();
    assert!(differing > 40, "{differing} of {}", calls.len());
}

/// Room for more calls than there are, so that memory is never refreshed.
const NEVER_FULL: usize = 4096;

/// Tells a time of a call that nobody asks about.
fn tell(tuner: &mut PolicyTuner) {
    let call = Call::draw(&mut Random::new(5));
    let query = call.query();
    tuner.learn(&query, &Measured { knobs: query.own(), micros: 1.0 });
}

/// Begins a job in which a time was told.
fn begin_noted(tuner: &mut PolicyTuner) {
    tuner.begin();
    tell(tuner);
}

#[test]
fn where_times_are_told_chunks_are_tried_sooner_and_nothing_else() {
    let calls = calls(200);
    let changed = |mut tuner: PolicyTuner| {
        let mut changed = 0;
        for call in &calls {
            tuner.begin();
            let query = call.query();
            let before = tuner.answer(&query).knobs;
            begin_noted(&mut tuner);
            let noted = tuner.answer(&query).knobs;
            if noted != before {
                assert_ne!(noted.chunk, before.chunk, "{before:?} {noted:?}");
                // The guard may leave either of them to NCCL.
                if ![before, noted].contains(&query.own()) {
                    assert_eq!(Knobs { chunk: before.chunk, ..noted }, before);
                }
                changed += 1;
            }
        }
        changed
    };
    assert!(changed(tuner(NEVER_FULL, 64)) > 5);
    assert_eq!(changed(tuner(NEVER_FULL, 64).without_notes()), 0, "nothing would find out what was wrong");
    assert_eq!(changed(tuner(0, 64)), 0, "deployed");
}

#[test]
fn what_was_decided_before_the_first_time_is_decided_anew_after_it() {
    let (mut with, mut without) = (tuner(NEVER_FULL, 64), tuner(NEVER_FULL, 0));
    for call in &calls(200) {
        let query = call.query();
        let [left, right] = [&mut with, &mut without].map(|tuner| {
            tuner.begin();
            tuner.answer(&query);
            tell(tuner);
            said(&tuner.answer(&query))
        });
        assert_eq!(left, right);
    }
}

#[test]
fn what_the_same_call_took_outweighs_what_is_believed_of_it_where_times_are_told() {
    let calls = calls(200);
    // How many calls, of whose knobs it was said that they take twice as long as NCCL's own, are NCCL's own from then on,
    // and how many there were.
    let given_up = |mut tuner: PolicyTuner| {
        let (mut own, mut slow) = (0, 0);
        for call in &calls {
            begin_noted(&mut tuner);
            let query = call.query();
            let wanted = tuner.answer(&query).knobs;
            if wanted == query.own() {
                continue;
            }
            // Once may have been a pause.
            for (knobs, micros) in [(wanted, 200.0), (wanted, 200.0), (query.own(), 100.0)] {
                tuner.learn(&query, &Measured { knobs, micros });
            }
            slow += 1;
            own += i32::from(tuner.answer(&query).knobs == query.own());
            begin_noted(&mut tuner);
            assert_eq!(tuner.answer(&query).knobs, wanted, "a new job knows nothing of it");
        }
        assert!(slow > 40, "{slow} of {}", calls.len());
        (own, slow)
    };
    let (own, slow) = given_up(tuner(NEVER_FULL, 64));
    assert_eq!(own, slow);
    assert_eq!(given_up(tuner(NEVER_FULL, 64).without_notes()), (0, slow));
    assert_eq!(given_up(tuner(0, 64)), (0, slow), "deployed, nothing that was measured decides");
}
