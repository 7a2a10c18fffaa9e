//! The trigger as a whole, over series made by hand.

use dynamiccl_spec::Collective;
use dynamiccl_spec::features::Feedback;

use super::*;

const KEY: fn() -> Key = || Key::new(0, Collective::AllReduce, 1 << 20);

/// A fixed series around 0 with spread 0.05 or so.
fn noise(i: u32) -> f64 {
    let bits = u64::from(i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xffff).sum();
    (sum as f64 / 65536.0 - 2.0) * 0.0866
}

fn trigger() -> Trigger {
    Trigger::new(TriggerConfig::default(), 2)
}

/// Calls from `from` to `to` whose ln(measured ÷ predicted) is the noise and `level`.
fn run(trigger: &mut Trigger, ran: u32, level: f64, calls: std::ops::Range<u32>) -> Vec<Signals> {
    let micros = |i| 100.0 * dynamiccl_spec::math::exp(level + noise(i));
    calls.map(|i| trigger.observe(KEY(), Ran(ran), micros(i), 100.0)).collect()
}

fn fired(signals: &[Signals]) -> Option<usize> {
    signals.iter().position(|signals| signals.fired)
}

#[test]
fn a_steady_series_is_expected_and_fires_nothing() {
    let signals = run(&mut trigger(), 1, 0.3, 0..500);
    assert_eq!(fired(&signals), None);
    let last = signals[499];
    assert!((last.expected - 0.3).abs() < 0.02, "{last:?}");
    assert!(signals.iter().all(|s| s.congestion < 0.05 && s.cusum.abs() < 1.0));
}

#[test]
fn a_shift_fires_once_with_its_sign_and_is_expected_afterwards() {
    for shift in [0.4, -0.4] {
        let mut trigger = trigger();
        run(&mut trigger, 1, 0.0, 0..100);
        let signals = run(&mut trigger, 1, shift, 100..300);
        let at = fired(&signals).expect("a shift of eight spreads");
        assert!(at < 6, "{at}");
        assert_eq!(signals[at].cusum, shift.signum());
        assert_eq!(fired(&signals[at + 1..]), None);
        assert!((signals[at + 20].expected - shift).abs() < 0.05, "{:?}", signals[at + 20]);
    }
}

#[test]
fn a_change_of_knobs_alone_fires_nothing_and_is_remembered() {
    let mut trigger = trigger();
    for (i, offset) in [0.0, 1.5, -1.0, 0.7, 0.0, 1.5].into_iter().cycle().take(60).enumerate() {
        let ran = (offset * 10.0) as i32 as u32;
        let from = i as u32 * 7;
        let signals = run(&mut trigger, ran, offset, from..from + 7);
        assert!(signals.iter().all(|s| !s.changed), "{i}");
        assert!(i < 6 || signals.iter().all(|s| (s.expected - offset).abs() < 0.1), "{i}");
    }
}

#[test]
fn settings_never_seen_before_fire_nothing_however_different() {
    let mut trigger = trigger();
    for i in 0..400 {
        let signals = run(&mut trigger, i, f64::from(i % 9) * 0.3, i..i + 1);
        assert!(!signals[0].changed && signals[0].error == 0.0);
    }
}

#[test]
fn a_new_setting_keeps_the_level_of_the_network() {
    let mut trigger = trigger();
    run(&mut trigger, 1, 0.0, 0..100);
    run(&mut trigger, 1, 0.5, 100..200);
    run(&mut trigger, 2, 0.2, 200..260);
    // The load that all settings suffered goes away: the second shows it, the first is expected right.
    let signals = run(&mut trigger, 2, -0.3, 260..300);
    assert!(fired(&signals).is_some_and(|at| at < 8), "{:?}", fired(&signals));
    let signals = run(&mut trigger, 1, 0.0, 300..340);
    assert!(signals.iter().all(|s| !s.changed && s.expected.abs() < 0.06), "{:?}", signals[0]);
}

#[test]
fn outliers_fire_nothing_and_leave_the_expectation_alone() {
    let mut trigger = trigger();
    run(&mut trigger, 1, 0.0, 0..50);
    for i in 50..600 {
        let level = if i % 12 == 0 { 3.0 } else { 0.0 };
        let signals = run(&mut trigger, 1, level, i..i + 1)[0];
        assert!(!signals.changed, "{i}");
        assert!(signals.expected.abs() < 0.06, "{i} {signals:?}");
        assert!(level == 0.0 || signals.error > 8.0);
    }
}

#[test]
fn congestion_rises_with_load_and_falls_with_it() {
    let mut trigger = trigger();
    run(&mut trigger, 1, 0.0, 0..100);
    let loaded = run(&mut trigger, 1, 0.5, 100..160).pop().unwrap().congestion;
    assert!((loaded - 0.5 / 1.5).abs() < 0.06, "{loaded}");
    let calm = run(&mut trigger, 1, 0.0, 160..260).pop().unwrap().congestion;
    assert!(calm < 0.06, "{calm}");
}

#[test]
fn times_that_are_no_numbers_change_nothing() {
    let (mut a, mut b) = (trigger(), trigger());
    run(&mut a, 1, 0.0, 0..50);
    run(&mut b, 1, 0.0, 0..50);
    for (measured, predicted) in [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (f64::INFINITY, 1.0)]
    {
        let signals = a.observe(KEY(), Ran(1), measured, predicted);
        assert_eq!((signals.ratio, signals.changed), (0.0, false));
    }
    assert_eq!(run(&mut a, 1, 0.0, 50..90), run(&mut b, 1, 0.0, 50..90));
}

#[test]
fn a_cleared_trigger_is_a_new_one() {
    let mut used = trigger();
    run(&mut used, 1, 0.0, 0..100);
    run(&mut used, 2, 0.9, 0..100);
    used.clear();
    assert_eq!(run(&mut used, 1, 0.1, 0..200), run(&mut trigger(), 1, 0.1, 0..200));
}

#[test]
fn communicators_do_not_disturb_each_other() {
    let (mut shared, mut alone) = (trigger(), trigger());
    for i in 0..200 {
        let other = Key::new(1, Collective::AllReduce, 1 << 20);
        shared.observe(other, Ran(1), f64::from(i % 50 + 1), 1.0);
        assert_eq!(run(&mut shared, 1, 0.0, i..i + 1), run(&mut alone, 1, 0.0, i..i + 1));
    }
}

#[test]
fn the_feedback_is_the_five_numbers() {
    let signals = Signals {
        ratio: 0.1,
        expected: 0.2,
        cusum: 0.3,
        error: 0.4,
        congestion: 0.5,
        changed: true,
        fired: true,
    };
    let expected = Feedback { ratio: 0.1, expected: 0.2, cusum: 0.3, error: 0.4, congestion: 0.5 };
    assert_eq!(Feedback::from(signals), expected);
}
