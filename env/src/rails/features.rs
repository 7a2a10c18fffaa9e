//! What a learned controller sees of a request, as numbers between 0 and 1: the same on every rank, because all
//! of it comes from the profile, the ports and the control plane's own past.

use dynamiccl_spec::Collective;
use dynamiccl_spec::math::log2;

use super::control::{Past, Request};
use super::graph::Axis;
use crate::gym::FeatureSpace;
use crate::workload::Phase;

/// Largest power of two of µs: about two minutes.
const MICROS: f64 = 27.0;
/// Largest power of two of bytes.
const BYTES: f64 = 40.0;
/// A wait of this share of an iteration is as bad as any.
const WAITED: f64 = 0.1;

/// Numbers of a request and how many there are of each.
const CONTEXT: [(&str, usize); 20] = [
    ("delay", 1),
    ("delay_of_iteration", 1),
    ("window", 1),
    ("window_of_delay", 1),
    ("window_mean", 1),
    ("window_deviation", 1),
    ("slack_of_delay", 1),
    ("time_of_path", 3),
    ("bytes", 1),
    ("calls", 1),
    ("axis", 2),
    ("collective", 4),
    ("ports", 3),
    ("same_next", 1),
    ("next_window_of_delay", 1),
    ("run", 1),
    ("surprise", 1),
    ("surprises", 1),
    ("place", 3),
    ("phase", 4),
];

/// Numbers of what came before and how many there are of each.
const HISTORY: [(&str, usize); 6] = [
    ("last_path", 3),
    ("last_provisioned", 1),
    ("last_wait", 1),
    ("last_reconfigurations", 1),
    ("last_surprise", 1),
    ("has_past", 1),
];

/// The features of a request.
pub fn context_spaces() -> Vec<FeatureSpace> {
    CONTEXT.map(space).into()
}

/// The features of what came before.
pub fn history_spaces() -> Vec<FeatureSpace> {
    HISTORY.map(space).into()
}

fn space((name, width): (&str, usize)) -> FeatureSpace {
    FeatureSpace { name: name.to_owned(), width, low: 0.0, high: 1.0 }
}

/// Writes what is known of a request.
pub fn write_context(request: &Request, into: &mut [f32]) {
    let delay = request.delay_us + 1.0;
    let beside = |micros: f64| micros / (micros + delay);
    let is = |yes: bool| f64::from(u8::from(yes));
    let (axis, collective, phase) = (request.axis, request.collective, request.phase);
    let numbers = [
        log(request.delay_us, MICROS),
        10.0 * request.delay_us / request.iteration_us.max(1.0),
        log(request.window_us, MICROS),
        request.window_us / delay,
        request.window_seen[0] / 4.0,
        request.window_seen[1] / 2.0,
        beside(request.slack_us),
        beside(request.micros[0]),
        beside(request.micros[1]),
        beside(request.micros[2]),
        log(request.bytes as f64, BYTES),
        log(f64::from(request.calls), 10.0),
        is(axis == Axis::Data),
        is(axis == Axis::Pipeline),
        is(collective == Collective::AllGather),
        is(collective == Collective::ReduceScatter),
        is(collective == Collective::AllReduce),
        is(collective == Collective::SendRecv),
        request.ports[0],
        request.ports[1],
        request.ports[2],
        request.same_next,
        beside(request.next_window_us),
        log(f64::from(request.run), 10.0),
        is(request.surprise),
        request.surprises,
        request.depth,
        log(f64::from(request.stages), 8.0),
        log(f64::from(request.micro_batches), 10.0),
        is(phase == Phase::WarmUp),
        is(phase == Phase::Steady),
        is(phase == Phase::CoolDown),
        is(phase == Phase::Optimizer),
    ];
    write(&numbers, into);
}

/// Writes what came before.
pub fn write_history(past: &Past, into: &mut [f32]) {
    let is = |yes: bool| f64::from(u8::from(yes));
    let route = past.decision.map(|decision| decision.route as usize);
    let numbers = [
        is(route == Some(0)),
        is(route == Some(1)),
        is(route == Some(2)),
        is(past.decision.is_some_and(|decision| decision.provision)),
        past.waited / WAITED,
        f64::from(past.changed) / 16.0,
        is(past.surprise),
        is(past.decision.is_some()),
    ];
    write(&numbers, into);
}

fn write(numbers: &[f64], into: &mut [f32]) {
    debug_assert_eq!(numbers.len(), into.len());
    into.iter_mut().zip(numbers).for_each(|(to, &number)| *to = number.clamp(0.0, 1.0) as f32);
}

/// Powers of two of a number from 0 up, 1 at the largest.
fn log(number: f64, largest: f64) -> f64 {
    log2(1.0 + number.max(0.0)) / largest
}
