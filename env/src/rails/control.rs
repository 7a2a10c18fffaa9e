//! Who decides about circuits: what a controller is told, and what it answers.
//!
//! Baselines, plans made in hindsight and a learned policy all stand behind [`Controller`]. What they are told
//! is the same on every rank: the profile, the ports, and what came of the request before.

use dynamiccl_spec::Collective;

use super::fabric::Route;
use super::graph::Axis;
use crate::workload::Phase;

/// What is done about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Who carries it.
    pub route: Route,
    /// Whether circuits change as soon as its ports are idle, before it comes; otherwise they change when all of
    /// its members have asked for it.
    pub provision: bool,
}

impl Decision {
    /// On demand, over circuits.
    pub const DEMAND: Decision = Decision { route: Route::Optical, provision: false };
    /// The paper's rule.
    pub const RULE: Decision = Decision { route: Route::Optical, provision: true };
    /// Over the hosts' network.
    pub const HOST: Decision = Decision { route: Route::Host, provision: false };
    /// Over half of the port.
    pub const SPLIT: Decision = Decision { route: Route::Split, provision: true };
}

/// What is known of a request whose ports do not serve its axis alone: calls of one communicator in a row,
/// coalesced over its members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Its number in the profiled iteration; of a call that the profile does not hold, that of the request
    /// before which it came.
    pub number: usize,
    /// Whether the profile does not hold it: it can only be answered when it is there.
    pub surprise: bool,
    /// The circuits that it needs.
    pub axis: Axis,
    /// What is called.
    pub collective: Collective,
    /// Where in the iteration it lies.
    pub phase: Phase,
    /// Bytes of all its calls.
    pub bytes: u64,
    /// Number of its calls.
    pub calls: u32,
    /// First of its stages ÷ all stages.
    pub depth: f64,
    /// Stages of the job.
    pub stages: u32,
    /// Micro-batches of an iteration.
    pub micro_batches: u32,
    /// µs until circuits have changed.
    pub delay_us: f64,
    /// µs of all its calls over each path, in the order of [`Route::ALL`].
    pub micros: [f64; 3],
    /// Share of its members whose ports serve the data axis, the pipeline axis, both.
    pub ports: [f64; 3],
    /// µs between the calls before it on its ports and itself, as profiled; 0 where nobody knows.
    pub window_us: f64,
    /// Mean and mean deviation of the same over the iterations so far, ÷ the profiled one.
    pub window_seen: [f64; 2],
    /// µs by which it could end later without delaying the profiled iteration.
    pub slack_us: f64,
    /// Share of its members whose next request is along the same axis.
    pub same_next: f64,
    /// µs between it and the next request on its ports, as profiled.
    pub next_window_us: f64,
    /// Requests on its first member's ports until the axis changes again, as profiled.
    pub run: u32,
    /// µs of the profiled iteration.
    pub iteration_us: f64,
    /// Calls so far that the profile did not hold, for each stage and iteration.
    pub surprises: f64,
}

/// What came of the request before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Past {
    /// What was done; none before the first.
    pub decision: Option<Decision>,
    /// How much longer than over circuits that were there it took to end, as a share of the iteration: what the
    /// control plane itself can measure.
    pub waited: f64,
    /// Stages whose ports changed.
    pub changed: u32,
    /// Whether it was one that the profile did not hold.
    pub surprise: bool,
}

/// Somebody who decides about circuits.
pub trait Controller {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// A job begins.
    fn begin(&mut self) {}

    /// What to do about a request.
    fn decide(&mut self, request: &Request, past: &Past) -> Decision;
}
