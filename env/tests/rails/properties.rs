//! What must hold for any job, whatever is decided.

use dynamiccl_env::rails::graph::Axis;
use dynamiccl_env::rails::{
    Decision, Event, Fabric, Jitter, Job, Request, Route, Run, Serves, Timing, Weather, paper_recipe,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::paper;

/// Equal but for rounding.
const SAME: f64 = 1e-3;

/// A job that has run for some iterations under random decisions, with all its calls.
fn record(pp: u32, micro_batches: u32, delay_ms: f64, jitter: Jitter, seed: u64) -> (Job, Vec<Event>) {
    let timing = Timing { flops_per_us: 1e8, ..Timing::default() };
    let job = Job::new(paper_recipe(pp, 2, micro_batches), timing, Fabric::default()).unwrap();
    let job = job.with_delay(delay_ms * 1e3);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut weather = |_| Weather::draw(&job.graph, &job.profile, &jitter, &mut rng);
    let weather: Vec<Weather> = (0..3).map(&mut weather).collect();
    let mut run = Run::new(&job, weather[0].clone()).recorded();
    let mut dice = ChaCha8Rng::seed_from_u64(!seed);
    for next in [1, 2, 0] {
        while run.ask().is_some() {
            let roll = dice.next_u32();
            let route = Route::ALL[roll as usize % 3];
            run.answer(Decision { route, provision: roll & 64 == 0 });
        }
        run.turn(weather[next].clone());
    }
    let events = run.events().to_vec();
    (job, events)
}

/// The calls over circuits that a stage took part in.
fn on_stage(events: &[Event], stage: u8) -> Vec<&Event> {
    let here = |event: &&Event| event.route != Route::Host && event.stages.contains(&stage);
    events.iter().filter(here).collect()
}

/// What a stage's ports serve for each of its calls, as its calls say, and when they last changed.
fn replay(events: &[Event], stage: u8, delay: f64) -> Result<(), TestCaseError> {
    let mut serves = Serves::One(Axis::Pipeline);
    let (mut busy, mut lit) = (0.0f64, 0.0f64);
    for event in on_stage(events, stage) {
        let ran = event.ran;
        if !serves.fits(event.axis, event.route) {
            prop_assert!(ran.start + SAME >= busy + delay, "stage {stage}: {event:?} after {busy}");
            prop_assert!(ran.changed > 0, "stage {stage}: {event:?} over ports that serve {serves:?}");
            prop_assert!(ran.changed_at + SAME >= busy, "stage {stage}: {event:?} while busy to {busy}");
            lit = ran.changed_at + delay;
            serves = Serves::needed(event.axis, event.route);
        }
        prop_assert!(ran.start + SAME >= lit, "stage {stage}: {event:?} before {lit}");
        prop_assert!(serves.fits(event.axis, event.route));
        busy = busy.max(ran.end);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn circuits_change_between_calls_and_serve_what_runs(
        pp in 2u32..6, more in 0u32..6, delay in 0.0f64..800.0, seed: u64,
        compute in 0.0f64..0.3, surprise in 0.0f64..1.0,
    ) {
        let (job, events) = record(pp, pp + more, delay, Jitter { compute, surprise }, seed);
        for stage in 0..pp as u8 {
            replay(&events, stage, job.fabric.delay_us)?;
        }
    }

    #[test]
    fn whole_ports_never_carry_both_axes_at_once(pp in 2u32..6, delay in 0.0f64..400.0, seed: u64) {
        let (_, events) = record(pp, pp, delay, Jitter { compute: 0.2, surprise: 0.5 }, seed);
        for stage in 0..pp as u8 {
            let calls = on_stage(&events, stage);
            for (at, a) in calls.iter().enumerate() {
                let clash = |b: &&&Event| {
                    b.axis != a.axis && (a.route, b.route) == (Route::Optical, Route::Optical)
                        && a.ran.start + SAME < b.ran.end && b.ran.start + SAME < a.ran.end
                };
                prop_assert!(!calls[at + 1..].iter().any(|b| clash(&b)), "stage {stage}: {a:?}");
            }
        }
    }

    #[test]
    fn a_stage_keeps_the_profiled_order_between_the_axes(pp in 2u32..6, delay in 0.0f64..400.0, seed: u64) {
        let (_, events) = record(pp, pp, delay, Jitter { compute: 0.2, surprise: 0.0 }, seed);
        for stage in 0..pp as u8 {
            let whole = on_stage(&events, stage).into_iter().filter(|event| event.route == Route::Optical);
            let whole: Vec<&Event> = whole.collect();
            for pair in whole.windows(2).filter(|pair| pair[0].axis != pair[1].axis) {
                prop_assert!(pair[1].ran.start + SAME >= pair[0].ran.end, "stage {stage}: {pair:?}");
            }
        }
    }

    #[test]
    fn a_line_carries_one_call_at_a_time(pp in 2u32..6, delay in 0.0f64..400.0, seed: u64) {
        let (job, events) = record(pp, pp, delay, Jitter { compute: 0.2, surprise: 0.5 }, seed);
        let mut free = std::collections::BTreeMap::new();
        for event in &events {
            let Some(call) = event.op.and_then(|op| job.graph.call(op as usize)) else { continue };
            let until = free.insert(call.line, event.ran.end).unwrap_or(0.0);
            prop_assert!(event.ran.start + SAME >= until, "{event:?} before {until}");
        }
    }
}

/// Circuits of some stages change while other stages are in the middle of a call.
#[test]
fn disjoint_groups_change_independently() {
    let job = paper(4, 2, 8).with_delay(500e3);
    let calm = Weather::calm(&job.graph, &job.profile);
    let mut run = Run::new(&job, calm.clone()).recorded();
    for _ in 0..2 {
        while run.ask().is_some() {
            run.answer(Decision::RULE);
        }
        run.turn(calm.clone());
    }
    let events = run.events();
    let apart = |a: &Event, b: &Event| a.stages.iter().all(|stage| !b.stages.contains(stage));
    let beside = |a: &Event, b: &Event| {
        a.ran.changed_at < b.ran.end && b.ran.start < a.ran.changed_at + job.fabric.delay_us
    };
    let changing: Vec<&Event> = events.iter().filter(|event| event.ran.changed > 0).collect();
    let count = changing.iter().filter(|a| events.iter().any(|b| apart(a, b) && beside(a, b))).count();
    assert!(count > 0, "of {} changes", changing.len());
}

/// The rewards of an iteration add up to what the iteration lost.
#[test]
fn stalls_add_up_to_what_the_iteration_loses() {
    let job = paper(4, 2, 4).with_delay(100e3);
    let jitter = Jitter { compute: 0.1, surprise: 0.5 };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut draw = || Weather::draw(&job.graph, &job.profile, &jitter, &mut rng);
    let weather = [draw(), draw()];
    let all = |job: &Job| {
        let mut run = Run::new(job, weather[0].clone());
        let (mut stalls, mut at) = (0.0, 0);
        let answers = [Decision::RULE, Decision::HOST, Decision::DEMAND, Decision::SPLIT];
        while run.ask().is_some() {
            at += 1;
            stalls += run.answer(answers[at % answers.len()]).stall;
        }
        (stalls, run.turn(weather[1].clone()).length_us)
    };
    let (stalls, length) = all(&job);
    let mut free = Run::new(&job.with_delay(0.0), weather[0].clone());
    while free.ask().is_some() {
        free.answer(Decision::RULE);
    }
    let lost = (length - free.turn(weather[1].clone()).length_us) / job.profile.length_us;
    assert!(lost > 0.0 && (stalls - lost).abs() < 1e-9, "{stalls} and {lost}");
}

/// A call that nobody expects cannot be provisioned, however it is answered.
#[test]
fn what_the_profile_does_not_hold_waits_for_its_circuits() {
    let job = paper(2, 2, 2).with_delay(100e3);
    let jitter = Jitter { compute: 0.0, surprise: 1.0 };
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut run = Run::new(&job, Weather::draw(&job.graph, &job.profile, &jitter, &mut rng)).recorded();
    let mut unexpected = 0;
    for _ in 0..20 {
        while let Some(Request { surprise, .. }) = run.ask() {
            run.answer(Decision::RULE);
            unexpected += usize::from(surprise);
        }
        run.turn(Weather::draw(&job.graph, &job.profile, &jitter, &mut rng));
    }
    let changed = run.events().iter().filter(|event| event.op.is_none() && event.ran.changed > 0);
    let waits = changed.map(|event| event.ran.start - event.ran.ready).collect::<Vec<_>>();
    assert!(unexpected > 0 && waits.iter().all(|&wait| wait + SAME >= 100e3), "{waits:?}");
}
