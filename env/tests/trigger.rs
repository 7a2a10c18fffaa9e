//! The trigger against the simulator: the bars are what `docs/trigger.md` measured, with room for the
//! smaller number of worlds.

#[allow(dead_code, reason = "the example prints more than is tested")]
#[path = "../examples/trigger/study.rs"]
mod study;

use study::{Change, JITTERS, Outcome, PLACES, Place, PlaceName};

const WORLDS: u64 = 40;
const USUAL: f64 = JITTERS[1].1;
const TIER_1: PlaceName = PLACES[0];
const RDMA: PlaceName = PLACES[1];
const SOCKETS: PlaceName = PLACES[2];

fn outcome(place: PlaceName, change: Change, jitter: f64) -> Outcome {
    Place::load(place).unwrap().study(change, jitter, WORLDS, 17).unwrap()
}

/// Share of changes, in %, that were seen within so many calls.
fn within(outcome: &Outcome, calls: u32) -> f64 {
    let seen = outcome.delays.iter().filter(|delay| delay.is_some_and(|delay| delay <= calls)).count();
    100.0 * seen as f64 / outcome.delays.len() as f64
}

#[test]
fn half_the_bandwidth_is_missed_by_nobody() {
    for place in [RDMA, SOCKETS] {
        for (name, jitter) in JITTERS {
            let share = within(&outcome(place, Change::Bandwidth50, jitter), 10);
            assert!(share >= 95.0, "{} {name}: {share} %", place.0);
        }
    }
}

#[test]
fn a_fifth_of_the_bandwidth_is_seen_on_rdma() {
    let outcome = outcome(RDMA, Change::Bandwidth20, USUAL);
    assert!(within(&outcome, 20) >= 90.0, "{outcome:?}");
}

#[test]
fn load_is_seen_when_it_comes_and_when_it_goes() {
    for change in [Change::LoadOn, Change::LoadOff] {
        let outcome = outcome(RDMA, change, USUAL);
        assert!(within(&outcome, 10) >= 95.0, "{change:?}: {outcome:?}");
    }
}

#[test]
fn a_straggler_is_seen_within_an_nvlink_domain() {
    let outcome = outcome(TIER_1, Change::Straggler, USUAL);
    assert!(within(&outcome, 10) >= 95.0, "{outcome:?}");
}

#[test]
fn nothing_outliers_and_knobs_alone_cry_wolf_in_less_than_two_of_a_thousand_calls() {
    for place in PLACES {
        for change in [Change::None, Change::Pauses, Change::Knobs] {
            for (name, jitter) in JITTERS {
                let alarms = outcome(place, change, jitter).false_per_1000();
                assert!(alarms < 2.0, "{} {name} {change:?}: {alarms}", place.0);
            }
        }
    }
}
