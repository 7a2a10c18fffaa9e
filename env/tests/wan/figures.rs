//! Published figures: mean times, gains, and the order of the four modes.

use dynamiccl_env::wan::{Modes, Search, Setting};

use crate::study;

/// Mean ms of each mode.
fn means(setting: &Setting, collectives: u64) -> [f64; 4] {
    let modes = Modes { cadence: 10, lag: 0, rho: 0.0, seed: 1 };
    let mut run = modes.begin(setting, Search::new(&setting.network));
    run.run(collectives);
    run.means()
}

/// What each mode gains over the first, in percent.
fn gains([base, ccl, wan, both]: [f64; 4]) -> [f64; 3] {
    [ccl, wan, both].map(|ms| 100.0 * (1.0 - ms / base))
}

fn close(got: &[f64], expected: &[f64], within: f64) -> bool {
    got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= within)
}

#[test]
fn eight_gpus_take_as_long_as_in_the_study() {
    let got = means(&study(4), 30_000);
    let expected = [76.35, 71.75, 51.74, 49.28];
    for (got, expected) in got.iter().zip(expected) {
        assert!((got / expected - 1.0).abs() < 0.01, "{got} {expected}");
    }
    assert!(close(&gains(got), &[6.0, 32.2, 35.5], 1.0), "{:?}", gains(got));
}

#[test]
fn sixteen_gpus_gain_as_much_as_in_the_study() {
    let got = gains(means(&study(8), 3_000));
    assert!(close(&got, &[7.0, 22.0, 26.5], 1.5), "{got:?}");
}

/// The order that the study claims for every chunk and every delay.
#[test]
fn both_beat_routes_beat_rings_beat_nothing_over_the_whole_grid() {
    for chunk_mb in [8.0, 16.0, 32.0, 64.0] {
        for delay_ms in [0.01, 0.1, 1.0, 10.0] {
            let got = means(&Setting { chunk_mb, delay_ms, ..study(4) }, 1_000);
            assert!(got.is_sorted_by(|a, b| a > b), "{chunk_mb} MB, {delay_ms} ms: {got:?}");
        }
    }
}

/// Without delays a ring is as slow as its slowest hop, whose mean has a closed form: two links between
/// datacentres and ten inside, all uniform.
#[test]
fn without_delays_the_mean_is_known() {
    let setting = Setting { chunk_mb: 64.0, delay_ms: 0.0, inside_delay_ms: 0.0, ..study(4) };
    let got = means(&setting, 40_000)[0];
    assert!((got - 151.03).abs() < 1.5, "{got}");
    let slowest = |gbps: f64| {
        let between = (100.0 - gbps) / 90.0;
        let inside = if gbps < 20.0 { 1.0 } else { (200.0 - gbps) / 180.0 };
        between * between * f64::powi(inside, 10)
    };
    // E[1/min] = 1/10 − ∫ P(min > x)/x² dx.
    let steps = 900_000;
    let at = |step: i32| 10.0 + 90.0 * (f64::from(step) + 0.5) / f64::from(steps);
    let integral: f64 = (0..steps).map(|step| slowest(at(step)) / (at(step) * at(step))).sum::<f64>() * 90.0
        / f64::from(steps);
    assert!((0.1 - integral - 0.042_140_1).abs() < 1e-6, "{}", 0.1 - integral);
    assert!((7.0 * 8.0 * 64.0 * (0.1 - integral) - 151.03).abs() < 0.01);
}

#[test]
fn correlated_traffic_turns_the_order_of_rings_and_routes() {
    let run = |rho| {
        let setting = study(4);
        let mut run =
            Modes { cadence: 10, lag: 0, rho, seed: 3 }.begin(&setting, Search::new(&setting.network));
        run.run(20_000);
        gains(run.means())
    };
    let [ccl, wan, both] = run(0.95);
    assert!(close(&[ccl, wan, both], &[43.0, 31.0, 54.0], 3.0), "{ccl} {wan} {both}");
    let [ccl, wan, _] = run(0.8);
    assert!(ccl < wan, "{ccl} {wan}");
}

#[test]
fn links_that_are_seen_too_late_are_worth_nothing_where_nothing_lasts() {
    let setting = study(4);
    let mut run =
        Modes { cadence: 10, lag: 1, rho: 0.0, seed: 1 }.begin(&setting, Search::new(&setting.network));
    run.run(10_000);
    let got = gains(run.means());
    assert!(got.iter().all(|gain| gain.abs() < 2.5), "{got:?}");
}
