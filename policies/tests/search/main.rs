//! The searches as their authors would judge them: few trials, good settings, on true times.

mod autoccl;
mod online;
mod tasks;

use autoccl::{TESTBEDS, coordinate_cells, mean_gain};
use dynamiccl_policies::roster::by_name;
use dynamiccl_spec::{Collective, Fallback, Reason, Tuner};
use online::Bench;
use tasks::{median, mraco, tasks};

/// Every online tuner.
fn tuners(seed: u64) -> impl Iterator<Item = Box<dyn Tuner>> {
    dynamiccl_policies::online::ROSTER.iter().map(move |entry| (entry.make)(seed))
}

/// Those that make their trials on the job's own calls.
fn on_own_calls(seed: u64) -> impl Iterator<Item = Box<dyn Tuner>> {
    tuners(seed).filter(|tuner| tuner.name() != "mraco")
}

const CALL: (Collective, u64) = (Collective::AllReduce, 4 << 20);

#[test]
fn mraco_saves_nine_tenths_of_the_trials_at_97_percent_of_the_quality() {
    let tasks = tasks();
    assert!(tasks.len() >= 12);
    for task in tasks {
        let outcomes: Vec<_> = (1..=5).map(|seed| mraco(&task, seed)).collect();
        let trials = median(outcomes.iter().map(|outcome| outcome.trials));
        let quality = median(outcomes.iter().map(|outcome| outcome.quality));
        assert!(trials <= 0.1 * task.surface.len() as f64, "{}: {trials} trials", task.name);
        assert!(quality >= 0.97, "{}: quality {quality}", task.name);
    }
}

#[test]
fn where_nobody_measures_nccls_own_stays() {
    let bench = Bench::new("dgx_a100", 2, 1);
    for mut tuner in tuners(1) {
        let calls = bench.calls(tuner.as_mut(), CALL, 20, false);
        for decision in &calls.decisions {
            assert_eq!(decision.reason, Reason::Fallback(Fallback::Unmeasured), "{}", tuner.name());
            assert!(!decision.exploratory);
        }
        assert!(calls.micros.iter().all(|&micros| micros == calls.own));
    }
}

#[test]
fn the_first_calls_are_nccls_own_and_the_last_are_no_slower() {
    let bench = Bench::new("dgx_a100", 2, 3);
    for mut tuner in on_own_calls(1) {
        let calls = bench.calls(tuner.as_mut(), CALL, 1000, true);
        assert_eq!(calls.micros[0], calls.own, "{}", tuner.name());
        assert!(!calls.decisions[0].exploratory);
        assert!(calls.decisions.iter().any(|decision| decision.exploratory), "{}", tuner.name());
        let last = median(calls.micros[900..].iter().copied());
        assert!(last <= 1.02 * calls.own, "{}: {last} beside {}", tuner.name(), calls.own);
    }
}

#[test]
fn mraco_has_done_its_trials_before_the_first_call() {
    let bench = Bench::new("dgx_a100", 2, 3);
    let mut mraco = by_name("mraco", 1).unwrap();
    let calls = bench.calls(mraco.as_mut(), CALL, 100, true);
    assert!(calls.decisions.iter().all(|d| d.reason == Reason::Policy && !d.exploratory));
    let first = calls.micros[0] / bench.best(CALL);
    assert!(first <= 1.05, "{first} times the best");
}

#[test]
fn a_new_job_forgets_and_a_seed_replays() {
    let bench = Bench::new("dgx_a100", 2, 3);
    for mut tuner in tuners(7) {
        let first = bench.calls(tuner.as_mut(), CALL, 150, true).decisions;
        tuner.begin();
        let again = bench.calls(tuner.as_mut(), CALL, 150, true).decisions;
        assert_eq!(first, again, "{}", tuner.name());
    }
}

#[test]
fn a_tuner_that_is_no_longer_told_anything_stops_trying() {
    let bench = Bench::new("dgx_a100", 2, 3);
    for mut tuner in tuners(1) {
        bench.calls(tuner.as_mut(), CALL, 20, true);
        let after = bench.calls(tuner.as_mut(), CALL, 200, false);
        assert!(after.decisions[100..].iter().all(|d| !d.exploratory), "{}", tuner.name());
    }
}

#[test]
fn coordinate_descent_gains_what_autoccl_reports_on_its_testbeds() {
    for (cluster, nodes) in TESTBEDS {
        let cells = coordinate_cells(cluster, nodes, 4);
        let gain = mean_gain(&cells);
        assert!((1.05..=1.4).contains(&gain), "{nodes} x {cluster}: {gain}");
        for cell in cells {
            let (collective, bytes, trials) = (cell.collective, cell.bytes, cell.trials);
            assert!(trials < 100, "{nodes} x {cluster}, {collective} {bytes}: {trials} trials");
        }
    }
}
