//! Who decides when, against the figures of the study's prolongation.

use dynamiccl_env::wan::compare::{Comparison, Courses};
use dynamiccl_env::wan::control::Cadence;
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

fn courses(comparison: &Comparison<'_>) -> Courses {
    comparison.courses(|| Ok::<_, ()>(())).unwrap()
}

/// Cadence 10, best cadence, trigger, clairvoyant.
fn figures(comparison: &Comparison<'_>) -> [f64; 4] {
    let courses = courses(comparison);
    let mut study = Cadence::STUDY;
    let (mut cadence, mut threshold) =
        (comparison.best_cadence(&courses).unwrap(), comparison.best_threshold(&courses).unwrap());
    let clairvoyant = comparison.clairvoyant(&courses, || Ok::<_, ()>(())).unwrap().unwrap();
    [
        comparison.judge(&courses, &mut study).mean_ms,
        comparison.judge(&courses, &mut cadence).mean_ms,
        comparison.judge(&courses, &mut threshold).mean_ms,
        clairvoyant.mean_ms,
    ]
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
