//! The trigger against the simulator: the bars are what `docs/trigger.md` measured, with room for the
//! smaller number of worlds.

#[path = "../examples/trigger/study.rs"]
mod study;

use study::{Change, JITTERS, Outcome, PLACES, Place};

const WORLDS: u64 = 40;

fn outcome(place: usize, change: Change, jitter: usize) -> Outcome {
    let place = Place::load(PLACES[place]).unwrap();
    place.study(change, JITTERS[jitter].1, WORLDS, 17).unwrap()
}

/// Share of changes, in %, that were seen within so many calls.
fn within(outcome: &Outcome, calls: u32) -> f64 {
    let seen = outcome.delays.iter().filter(|delay| delay.is_some_and(|delay| delay <= calls)).count();
    100.0 * seen as f64 / outcome.delays.len() as f64
}

#[test]
fn half_the_bandwidth_is_missed_by_nobody() {
    for place in [1, 2] {
        for jitter in 0..JITTERS.len() {
            let outcome = outcome(place, Change::Bandwidth50, jitter);
            let share = within(&outcome, 10);
            assert!(share >= 95.0, "{} {}: {share} %", PLACES[place].0, JITTERS[jitter].0);
        }
    }
}

#[test]
fn a_fifth_of_the_bandwidth_is_seen_on_rdma() {
    let outcome = outcome(1, Change::Bandwidth20, 1);
    assert!(within(&outcome, 20) >= 90.0, "{outcome:?}");
}

#[test]
fn load_is_seen_when_it_comes_and_when_it_goes() {
    for change in [Change::LoadOn, Change::LoadOff] {
        let outcome = outcome(1, change, 1);
        assert!(within(&outcome, 10) >= 95.0, "{change:?}: {outcome:?}");
    }
}

#[test]
fn a_straggler_is_seen_within_an_nvlink_domain() {
    let outcome = outcome(0, Change::Straggler, 1);
    assert!(within(&outcome, 10) >= 95.0, "{outcome:?}");
}

#[test]
fn nothing_outliers_and_knobs_alone_cry_wolf_in_less_than_two_of_a_thousand_calls() {
    for place in 0..PLACES.len() {
        for change in [Change::None, Change::Pauses, Change::Knobs] {
            for jitter in 0..JITTERS.len() {
                let alarms = outcome(place, change, jitter).false_per_1000();
                assert!(alarms < 2.0, "{} {change:?}: {alarms}", PLACES[place].0);
            }
        }
    }
}
