//! Who decides when, against the figures of the study's prolongation.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dynamiccl_env::wan::compare::{Comparison, Courses};
use dynamiccl_env::wan::control::{Cadence, Controller};
use dynamiccl_env::wan::{Costs, Setting};

use crate::study;

fn comparison(
    setting: &Setting,
    rho: f64,
    costs: [f64; 2],
    traces: usize,
    collectives: usize,
) -> Comparison<'_> {
    let costs = Costs { rebuild_ms: costs[0], reroute_ms: costs[1] };
    Comparison { setting, costs, rho, lag: 0, traces, collectives, seed: 1, threads: 2 }
}

fn on(_: u64) -> Result<(), ()> {
    Ok(())
}

fn courses(comparison: &Comparison<'_>) -> Courses {
    comparison.courses(on).unwrap()
}

/// Cadence 10, best cadence, trigger, clairvoyant.
fn figures(comparison: &Comparison<'_>) -> [f64; 4] {
    let courses = courses(comparison);
    let mut study = Cadence::STUDY;
    let mut cadence = comparison.best_cadence(&courses, on).unwrap().unwrap();
    let mut threshold = comparison.best_threshold(&courses, on).unwrap().unwrap();
    let clairvoyant = comparison.clairvoyant(&courses, on).unwrap().unwrap();
    let judge = |controller: &mut dyn Controller| comparison.judge(&courses, controller, on).unwrap().mean_ms;
    [judge(&mut study), judge(&mut cadence), judge(&mut threshold), clairvoyant.mean_ms]
}

/// Two rows of the published table; `examples/wan_table.rs` prints all of them.
#[test]
fn who_decides_when_costs_what_it_does_in_the_study() {
    let setting = study(4);
    for (rho, costs, expected, within) in [
        (0.0, [20.0, 1.0], [52.2, 47.3, 42.7, 36.6], 0.03),
        (0.95, [100.0, 5.0], [47.6, 47.7, 40.5, 33.1], 0.07),
    ] {
        let got = figures(&comparison(&setting, rho, costs, 2, 500));
        for (got, expected) in got.iter().zip(expected) {
            assert!((got / expected - 1.0).abs() < within, "rho {rho}: {got} {expected}");
        }
    }
}

#[test]
fn nobody_beats_who_knows_everything() {
    let setting = study(3);
    for (rho, costs) in [(0.5, [20.0, 1.0]), (0.99, [500.0, 5.0])] {
        let [study, cadence, threshold, least] = figures(&comparison(&setting, rho, costs, 2, 200));
        assert!([study, cadence, threshold].iter().all(|ms| *ms >= least - 1e-9), "{least}");
    }
}

/// Whatever takes long tells how far it is, stops when told to, and counts up to what it said before.
#[test]
fn long_work_counts_its_collectives_and_can_be_stopped() {
    let setting = study(3);
    let comparison = comparison(&setting, 0.5, [20.0, 1.0], 2, 250);
    let (told, asked) = (AtomicU64::new(0), AtomicU64::new(0));
    let step = |collectives| {
        told.fetch_add(collectives, Relaxed);
        asked.fetch_add(1, Relaxed);
        Ok::<_, ()>(())
    };
    let courses = comparison.courses(step).unwrap();
    comparison.clairvoyant(&courses, step).unwrap().unwrap();
    assert_eq!((told.load(Relaxed), asked.load(Relaxed)), (comparison.steps(), 3 * 2 * 3));
    comparison.judge(&courses, &mut { Cadence::STUDY }, step).unwrap();
    assert_eq!((told.load(Relaxed), asked.load(Relaxed)), (comparison.steps(), 3 * 2 * 3 + 2 * 3));
    let stop = |_| Err("stop");
    assert_eq!(comparison.courses(stop).err(), Some("stop"));
    assert_eq!(comparison.best_cadence(&courses, stop), Err("stop"));
    assert_eq!(comparison.best_threshold(&courses, stop), Err("stop"));
    assert_eq!(comparison.judge(&courses, &mut { Cadence::STUDY }, stop), Err("stop"));
    assert_eq!(comparison.clairvoyant(&courses, stop).unwrap(), Err("stop"));
}
