//! The state of the rails: what each stage's ports serve, since when, and until when calls use them.
//!
//! This is the only place where circuits change. A port changes only once all calls over it have ended, and a
//! call runs only once the ports of all its stages fit: everything else about the control plane is when to ask.

use super::control::Decision;
use super::fabric::{Fabric, Route};
use super::graph::{Axis, Call, Graph, Work};

/// What a port's circuits serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Serves {
    /// One axis with the whole port.
    One(Axis),
    /// Both axes, each with half of it.
    Both,
}

/// The ports of one stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Port {
    /// What they serve.
    pub serves: Serves,
    /// µs at which that has come about, or will.
    pub lit_at: f64,
    /// µs at which the last of the calls over them ends.
    pub busy_until: f64,
}

/// What has become of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ran {
    /// µs at which all members had asked for it and its line was free.
    pub ready: f64,
    /// µs at which it started.
    pub start: f64,
    /// µs at which it ended.
    pub end: f64,
    /// Stages whose ports changed for it.
    pub changed: u32,
    /// µs at which the ports began to change, where any did.
    pub changed_at: f64,
}

/// Where a running job stands.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Every moment that has come, in µs.
    pub moments: Vec<f64>,
    /// Until when each line is busy.
    pub lines: Vec<f64>,
    /// The ports of each stage.
    pub ports: Vec<Port>,
}

impl Serves {
    /// Whether a call along an axis can run over a path without a change.
    pub fn fits(self, axis: Axis, route: Route) -> bool {
        match route {
            Route::Optical => self == Serves::One(axis),
            // Half of a port that serves the axis alone is half a port too.
            Route::Split => matches!(self, Serves::Both) || self == Serves::One(axis),
            Route::Host => true,
        }
    }

    /// What ports that do not fit must become.
    pub fn needed(axis: Axis, route: Route) -> Serves {
        if route == Route::Split { Serves::Both } else { Serves::One(axis) }
    }
}

impl Port {
    /// µs from which it may change.
    pub fn idle_from(&self) -> f64 {
        self.busy_until.max(self.lit_at)
    }
}

impl State {
    /// The state before the first iteration: nothing has run, and all ports serve pipelines.
    pub fn new(graph: &Graph) -> Self {
        let port = Port { serves: Serves::One(Axis::Pipeline), lit_at: 0.0, busy_until: 0.0 };
        State {
            moments: vec![0.0; graph.stages + graph.ops.len()],
            // Calls that the profile does not hold have a line of their own on each stage.
            lines: vec![0.0; graph.lines as usize + graph.stages],
            ports: vec![port; graph.stages],
        }
    }

    /// µs at which work can be launched.
    pub fn issued(&self, graph: &Graph, op: usize) -> f64 {
        let op = &graph.ops[op];
        op.after.iter().fold(0.0, |latest: f64, &at| latest.max(self.moments[at as usize])) + op.gap_us
    }

    /// Does a piece of compute that takes so long.
    pub fn compute(&mut self, graph: &Graph, op: usize, micros: f64) {
        debug_assert!(matches!(graph.ops[op].work, Work::Compute(_)));
        self.moments[graph.end_of(op)] = self.issued(graph, op) + micros;
    }

    /// Runs a call that is issued then.
    pub fn call(&mut self, call: &Call, issued: f64, fabric: &Fabric, decision: Decision) -> Ran {
        let ready = issued.max(self.lines[call.line as usize]);
        let (mut start, mut changed, mut changed_at) = (ready, 0, 0.0);
        if decision.route != Route::Host {
            (start, changed, changed_at) = self.prepare(call, ready, fabric.delay_us, decision);
        }
        let end = start + fabric.micros(call, decision.route);
        if decision.route != Route::Host {
            for &stage in &call.stages {
                let port = &mut self.ports[usize::from(stage)];
                port.busy_until = port.busy_until.max(end);
            }
        }
        self.lines[call.line as usize] = end;
        Ran { ready, start, end, changed, changed_at }
    }

    /// Makes all ports of a call fit; when it can start, how many changed, and when they began to.
    fn prepare(&mut self, call: &Call, ready: f64, delay: f64, decision: Decision) -> (f64, u32, f64) {
        let Decision { route, provision } = decision;
        let (mut lit, mut idle, mut changed) = (ready, 0.0f64, 0);
        for &stage in &call.stages {
            let port = &self.ports[usize::from(stage)];
            if port.serves.fits(call.axis, route) {
                lit = lit.max(port.lit_at);
            } else {
                idle = idle.max(port.idle_from());
                changed += 1;
            }
        }
        if changed == 0 {
            return (lit, 0, 0.0);
        }
        // Without provisioning the request comes with the call itself.
        let from = if provision { idle } else { idle.max(lit) };
        let needed = Serves::needed(call.axis, route);
        for &stage in &call.stages {
            let port = &mut self.ports[usize::from(stage)];
            if !port.serves.fits(call.axis, route) {
                (port.serves, port.lit_at) = (needed, from + delay);
            }
        }
        (lit.max(from + delay), changed, from)
    }

    /// Changes a stage's ports for a call that is expected; whether they had to.
    pub fn expect(&mut self, stage: u8, axis: Axis, route: Route, delay: f64) -> bool {
        let port = &mut self.ports[usize::from(stage)];
        if port.serves.fits(axis, route) {
            return false;
        }
        (port.lit_at, port.serves) = (port.idle_from() + delay, Serves::needed(axis, route));
        true
    }

    /// Begins the next iteration where each stage has ended this one; µs at which the last of them did.
    pub fn turn(&mut self, graph: &Graph) -> f64 {
        let ends: Vec<f64> = graph.done.iter().map(|&done| self.moments[done as usize]).collect();
        self.moments[..graph.stages].copy_from_slice(&ends);
        ends.into_iter().fold(0.0, f64::max)
    }
}
