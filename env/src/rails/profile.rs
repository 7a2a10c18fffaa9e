//! What the first iteration teaches the control plane: in which order calls come on each stage, which of them
//! are one request, and how much time there is around each.
//!
//! It is taken on a network where everybody reaches everybody, so it knows no delay of any switch.

use super::control::Decision;
use super::fabric::Fabric;
use super::graph::{Graph, Work};
use super::port::State;

/// What is profiled of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// All work in the order in which it starts; calls of a stage keep it.
    pub order: Vec<u32>,
    /// The request of each piece of work; none for compute.
    pub request_of: Vec<Option<u32>>,
    /// The requests, in the order in which they begin.
    pub requests: Vec<Profiled>,
    /// µs of the iteration.
    pub length_us: f64,
    /// µs of idle time at each shift between the axes on the rail.
    pub windows: Vec<f64>,
}

/// What is profiled of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiled {
    /// Its calls.
    pub ops: Vec<u32>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// µs between the calls before it on its ports and itself.
    pub window_us: f64,
    /// µs by which it could end later without delaying the iteration.
    pub slack_us: f64,
    /// Share of its members whose next request is along the same axis.
    pub same_next: f64,
    /// µs until the next request on its ports.
    pub next_window_us: f64,
    /// Requests on its first member's ports until the axis changes again.
    pub run: u32,
}

/// Times of all work in one iteration.
struct Times {
    start: Vec<f64>,
    end: Vec<f64>,
}

impl Profile {
    /// Profiles an iteration.
    pub fn of(graph: &Graph, fabric: &Fabric) -> Profile {
        let times = free(graph, fabric);
        let mut order: Vec<u32> = (0..graph.ops.len() as u32).collect();
        order.sort_by(|&a, &b| times.start[a as usize].total_cmp(&times.start[b as usize]).then(a.cmp(&b)));
        let (request_of, mut requests) = coalesce(graph, &order);
        let length_us = times.end.iter().copied().fold(0.0, f64::max);
        around(graph, &times, &mut requests, length_us);
        let late = latest(graph, fabric, length_us);
        for request in &mut requests {
            let slack = |&op: &u32| late[op as usize] - times.end[op as usize];
            request.slack_us = request.ops.iter().map(slack).fold(f64::INFINITY, f64::min).max(0.0);
        }
        let windows = shifts(graph, &requests, &times, length_us);
        Profile { order, request_of, requests, length_us, windows }
    }
}

/// An iteration on a network where everybody reaches everybody.
fn free(graph: &Graph, fabric: &Fabric) -> Times {
    let mut state = State::new(graph);
    let mut times = Times { start: Vec::new(), end: Vec::new() };
    for (op, work) in graph.ops.iter().enumerate() {
        let issued = state.issued(graph, op);
        let (start, end) = match &work.work {
            Work::Compute(micros) => (issued, issued + micros),
            Work::Call(call) => {
                let start = issued.max(state.lines[call.line as usize]);
                let end = start + fabric.micros(call, Decision::RULE.route);
                state.lines[call.line as usize] = end;
                (start, end)
            }
        };
        state.moments[graph.end_of(op)] = end;
        times.start.push(start);
        times.end.push(end);
    }
    times
}

/// Joins calls of one communicator that follow each other on their stage.
fn coalesce(graph: &Graph, order: &[u32]) -> (Vec<Option<u32>>, Vec<Profiled>) {
    let mut request_of = vec![None; graph.ops.len()];
    let mut requests: Vec<Profiled> = Vec::new();
    let mut last: Vec<Option<u32>> = vec![None; graph.stages];
    for &op in order {
        let Some(call) = graph.call(op as usize) else { continue };
        let before = last[usize::from(call.stages[0])].filter(|_| call.stages.len() == 1);
        let joins = before.filter(|&request| {
            let first = graph.call(requests[request as usize].ops[0] as usize);
            first.is_some_and(|first| (first.line, first.collective) == (call.line, call.collective))
        });
        let request = joins.unwrap_or(requests.len() as u32);
        if joins.is_none() {
            requests.push(Profiled {
                ops: Vec::new(),
                bytes: 0,
                window_us: 0.0,
                slack_us: 0.0,
                same_next: 0.0,
                next_window_us: 0.0,
                run: 1,
            });
        }
        requests[request as usize].ops.push(op);
        requests[request as usize].bytes += call.bytes;
        request_of[op as usize] = Some(request);
        call.stages.iter().for_each(|&stage| last[usize::from(stage)] = Some(request));
    }
    (request_of, requests)
}

/// Fills in what comes before and after each request on its ports; an iteration follows itself.
fn around(graph: &Graph, times: &Times, requests: &mut [Profiled], length: f64) {
    let of = |request: &Profiled| graph.call(request.ops[0] as usize).expect("requests are of calls").clone();
    let calls: Vec<_> = requests.iter().map(of).collect();
    let begin = |request: &Profiled| times.start[request.ops[0] as usize];
    let end = |request: &Profiled| request.ops.iter().map(|&op| times.end[op as usize]).fold(0.0, f64::max);
    let mut windows = vec![f64::INFINITY; requests.len()];
    let mut nexts = vec![(0.0, f64::INFINITY); requests.len()];
    for stage in 0..graph.stages as u8 {
        let on: Vec<usize> = (0..requests.len()).filter(|&at| calls[at].stages.contains(&stage)).collect();
        for (position, &at) in on.iter().enumerate() {
            let next = on[(position + 1) % on.len()];
            let wrapped = if position + 1 == on.len() { length } else { 0.0 };
            let window = begin(&requests[next]) + wrapped - end(&requests[at]);
            windows[next] = windows[next].min(window);
            nexts[at].1 = nexts[at].1.min(window);
            nexts[at].0 += f64::from(u8::from(calls[at].axis == calls[next].axis));
            if calls[at].stages[0] == stage {
                let same = |step: &usize| calls[on[(position + step) % on.len()]].axis == calls[at].axis;
                requests[at].run = (1..on.len()).take_while(same).count() as u32 + 1;
            }
        }
    }
    for (at, request) in requests.iter_mut().enumerate() {
        request.window_us = windows[at].max(0.0);
        request.next_window_us = nexts[at].1.max(0.0);
        request.same_next = nexts[at].0 / calls[at].stages.len() as f64;
    }
}

/// The latest end of each piece of work with which the iteration is not longer.
fn latest(graph: &Graph, fabric: &Fabric, length: f64) -> Vec<f64> {
    let mut late = vec![length; graph.ops.len()];
    // When the next call of each line has to start.
    let mut lines = vec![length; graph.lines as usize];
    for op in (0..graph.ops.len()).rev() {
        let work = &graph.ops[op];
        let start = match &work.work {
            Work::Compute(micros) => late[op] - micros,
            Work::Call(call) => {
                let line = &mut lines[call.line as usize];
                late[op] = late[op].min(*line);
                *line = late[op] - fabric.micros(call, Decision::RULE.route);
                *line
            }
        };
        let start = start - work.gap_us;
        for &moment in &work.after {
            if let Some(before) = (moment as usize).checked_sub(graph.stages) {
                late[before] = late[before].min(start);
            }
        }
    }
    late
}

/// Windows of the whole rail: idle time where the axis of its requests changes, the next iteration's first
/// change included. Requests that overlap leave a window below 0.
fn shifts(graph: &Graph, requests: &[Profiled], times: &Times, length: f64) -> Vec<f64> {
    let axis = |request: &Profiled| graph.call(request.ops[0] as usize).map(|call| call.axis);
    let mut windows = Vec::new();
    let mut until = 0.0f64;
    for (at, request) in requests.iter().enumerate() {
        let start = times.start[request.ops[0] as usize];
        if at > 0 && axis(request) != axis(&requests[at - 1]) {
            windows.push(start - std::mem::take(&mut until));
        }
        until = request.ops.iter().map(|&op| times.end[op as usize]).fold(until, f64::max);
    }
    if let (Some(first), Some(last)) = (requests.first(), requests.last())
        && axis(first) != axis(last)
    {
        windows.push(times.start[first.ops[0] as usize] + length - until);
    }
    windows
}
