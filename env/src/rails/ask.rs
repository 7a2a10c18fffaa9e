//! What the control plane knows while a job runs: what it tells whoever decides, and when the iteration would end
//! if nothing delayed it any more.

use dynamiccl_spec::Collective;

use super::control::{Decision, Request};
use super::fabric::Route;
use super::graph::{Axis, Call, Work};
use super::job::Job;
use super::port::Serves;
use super::run::{Asked, Run, Surprise};
use crate::workload::Phase;

/// Bytes of a call that the profile does not hold: somebody's statistics.
const SURPRISE_BYTES: u64 = 4096;

impl Run {
    /// When the iteration ends if nothing delays it from here on.
    pub(super) fn look_ahead(&mut self) -> f64 {
        if !self.watched {
            return 0.0;
        }
        let (job, free) = (&self.job, self.job.fabric.with_delay(0.0));
        self.ahead.clone_from(&self.state);
        for (position, &op) in job.profile.order.iter().enumerate().skip(self.at) {
            let op = op as usize;
            let Work::Call(call) = &job.graph.ops[op].work else {
                self.ahead.compute(&job.graph, op, self.weather.compute[op]);
                continue;
            };
            let mut issued = self.ahead.issued(&job.graph, op);
            let number = job.profile.request_of[op].unwrap_or_default() as usize;
            let begins = job.profile.requests[number].ops[0] as usize == op;
            if begins && self.weather.surprises[number] {
                let done = position == self.at && self.surprise == Surprise::Done;
                if !done {
                    self.ahead.call(&surprise_call(job, number), issued, &free, Decision::RULE);
                }
                issued = issued.max(self.ahead.lines[data_line(job, number)]);
            }
            let end = self.ahead.call(call, issued, &free, Decision::RULE).end;
            self.ahead.moments[job.graph.end_of(op)] = end;
        }
        let ends = job.graph.done.iter().map(|&done| self.ahead.moments[done as usize]);
        ends.fold(0.0, f64::max)
    }

    /// What the controller is told.
    pub(super) fn request(&self, asked: Asked) -> Request {
        let (number, surprise) = match asked {
            Asked::Request(number) => (number, false),
            Asked::Surprise(number) => (number, true),
        };
        let job = &self.job;
        let profiled = &job.profile.requests[number];
        let first = first_call(job, number);
        let unexpected = surprise_call(job, number);
        let call = if surprise { &unexpected } else { first };
        let micros = |route| {
            let of =
                |&op: &u32| job.graph.call(op as usize).map_or(0.0, |call| job.fabric.micros(call, route));
            if surprise { job.fabric.micros(call, route) } else { profiled.ops.iter().map(of).sum() }
        };
        let serving = |serves: Serves| {
            let ports = call.stages.iter().map(|&stage| self.state.ports[usize::from(stage)].serves);
            ports.filter(|&now| now == serves).count() as f64 / call.stages.len() as f64
        };
        Request {
            number,
            surprise,
            axis: call.axis,
            collective: call.collective,
            phase: if surprise { Phase::Steady } else { call.phase },
            bytes: if surprise { call.bytes } else { profiled.bytes },
            calls: if surprise { 1 } else { profiled.ops.len() as u32 },
            depth: f64::from(call.stages[0]) / job.graph.stages as f64,
            stages: job.graph.stages as u32,
            micro_batches: job.recipe.micro_batches,
            delay_us: job.fabric.delay_us,
            micros: Route::ALL.map(micros),
            ports: [Serves::One(Axis::Data), Serves::One(Axis::Pipeline), Serves::Both].map(serving),
            window_us: if surprise { 0.0 } else { profiled.window_us },
            window_seen: if surprise { [0.0, 0.0] } else { self.seen[number] },
            slack_us: if surprise { 0.0 } else { profiled.slack_us },
            same_next: if surprise {
                f64::from(u8::from(first.axis == call.axis))
            } else {
                profiled.same_next
            },
            next_window_us: if surprise { 0.0 } else { profiled.next_window_us },
            run: if surprise { 1 } else { profiled.run },
            iteration_us: job.profile.length_us,
            surprises: f64::from(self.surprises.0) / f64::from(self.surprises.1.max(1)),
        }
    }
}

pub(super) fn first_call(job: &Job, number: usize) -> &Call {
    job.graph.call(job.profile.requests[number].ops[0] as usize).expect("requests are of calls")
}

/// The line of calls that the profile does not hold: one beyond those of the graph for each stage.
pub(super) fn data_line(job: &Job, number: usize) -> usize {
    job.graph.lines as usize + usize::from(first_call(job, number).stages[0])
}

/// The call that comes unexpected before a request, among the replicas of its first stage.
pub(super) fn surprise_call(job: &Job, number: usize) -> Call {
    Call {
        axis: Axis::Data,
        stages: [first_call(job, number).stages[0]].into(),
        collective: Collective::AllReduce,
        bytes: SURPRISE_BYTES,
        size: job.recipe.layout.dp,
        line: data_line(job, number) as u32,
        phase: Phase::Steady,
    }
}
