//! A job that runs, request by request: the control plane between whoever decides and the ports.
//!
//! Requests whose ports serve their axis alone run as they are; about all others the controller is asked. What
//! the profile holds can be provisioned, what it does not hold is answered when it comes. Everything keeps
//! the profiled order, first come, first served.

use std::sync::Arc;

use super::ask::{data_line, first_call, surprise_call};
use super::control::{Decision, Past, Request};
use super::fabric::Route;
use super::graph::{Axis, Call, Work};
use super::job::Job;
use super::port::{Ran, Serves, State};
use super::weather::Weather;

/// How much of the mean a new window is.
const RECENT: f64 = 0.25;

/// A call as it ran, for whoever looks over the control plane's shoulder; or ports that changed for a call before
/// which another came, which takes no time once they are lit.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The piece of work; none for a call that the profile does not hold.
    pub op: Option<u32>,
    /// The stages that took part.
    pub stages: Box<[u8]>,
    /// The circuits that it needs.
    pub axis: Axis,
    /// Who carried it.
    pub route: Route,
    /// When.
    pub ran: Ran,
}

/// A running job.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) job: Job,
    pub(super) state: State,
    /// Room to look ahead in.
    pub(super) ahead: State,
    pub(super) weather: Weather,
    /// Position in the profiled order.
    pub(super) at: usize,
    decided: Vec<Option<Decision>>,
    /// Whether the call before the request at this position has been answered.
    pub(super) surprise: Surprise,
    asked: Option<Asked>,
    /// When the iteration would end if nothing delayed it from now on.
    expected_end: f64,
    began: f64,
    past: Past,
    /// µs that the last call took longer than over circuits that were there.
    waited: f64,
    pub(super) seen: Vec<[f64; 2]>,
    pub(super) surprises: (u32, u32),
    /// Changes of ports in this iteration.
    changes: u32,
    log: Option<Vec<Event>>,
    /// Whether what a decision delays is worked out.
    pub(super) watched: bool,
}

/// How far a call that the profile does not hold has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surprise {
    None,
    /// The request behind it has been decided, if it had to be.
    Expected,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Request(usize),
    Surprise(usize),
}

/// What a decision led to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// By which share of the profiled iteration it delayed the end of this one.
    pub stall: f64,
    /// Stages whose ports changed.
    pub changed: u32,
}

/// An iteration that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// µs that it took.
    pub length_us: f64,
    /// Stages' ports that changed.
    pub changes: u32,
}

impl Run {
    /// A job before its first iteration.
    pub fn new(job: &Job, weather: Weather) -> Run {
        let state = State::new(&job.graph);
        let requests = job.profile.requests.len();
        let mut run = Run {
            job: job.clone(),
            ahead: state.clone(),
            state,
            weather,
            at: 0,
            decided: vec![None; requests],
            surprise: Surprise::None,
            asked: None,
            expected_end: 0.0,
            began: 0.0,
            past: Past::default(),
            waited: 0.0,
            seen: vec![[1.0, 0.0]; requests],
            surprises: (0, 0),
            changes: 0,
            log: None,
            watched: true,
        };
        run.expected_end = run.look_ahead();
        run
    }

    /// The same job with a record of all its calls.
    pub fn recorded(self) -> Run {
        Run { log: Some(Vec::new()), ..self }
    }

    /// The same job for somebody who does not ask what a decision has delayed, which is much of the work.
    pub fn unwatched(self) -> Run {
        Run { watched: false, ..self }
    }

    /// The calls so far, where they are recorded.
    pub fn events(&self) -> &[Event] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Share of the iteration's work that is done.
    pub fn progress(&self) -> f64 {
        self.at as f64 / self.job.profile.order.len().max(1) as f64
    }

    /// Whether a call that the profile does not hold is about to come before the request that is asked about.
    pub fn betrayed(&self) -> bool {
        matches!(self.asked, Some(Asked::Request(number)) if self.weather.surprises[number])
    }

    /// What came of the request before.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Goes on until somebody has to decide; nothing at the end of the iteration.
    pub fn ask(&mut self) -> Option<Request> {
        while self.asked.is_none() {
            let &op = self.job.profile.order.get(self.at)?;
            let op = op as usize;
            let Some(number) = self.job.profile.request_of[op].map(|request| request as usize) else {
                self.state.compute(&self.job.graph, op, self.weather.compute[op]);
                self.at += 1;
                continue;
            };
            let begins = self.job.profile.requests[number].ops[0] as usize == op;
            if begins && self.must_ask(number) {
                self.asked = Some(Asked::Request(number));
            } else if begins && self.comes_unexpected(number) {
                self.asked = Some(Asked::Surprise(number));
            } else {
                self.carry(op, number);
                self.at += 1;
            }
        }
        self.asked.map(|asked| self.request(asked))
    }

    /// Decides what [`Run::ask`] has asked; whatever the answer, what cannot be provisioned is not.
    pub fn answer(&mut self, decision: Decision) -> Outcome {
        let before = self.changes;
        self.waited = 0.0;
        let asked = self.asked.take();
        let surprise = matches!(asked, Some(Asked::Surprise(_)));
        match asked {
            Some(Asked::Request(number)) => {
                self.decided[number] = Some(decision);
                // What is behind a call that nobody expects runs after it; all else runs now.
                if !self.weather.surprises[number] {
                    self.carry(self.job.profile.order[self.at] as usize, number);
                    self.at += 1;
                }
            }
            Some(Asked::Surprise(number)) => {
                self.interject(number, Decision { provision: false, ..decision });
            }
            None => {}
        }
        let end = self.look_ahead();
        let stall = (end - self.expected_end) / self.job.profile.length_us;
        self.expected_end = end;
        let changed = self.changes - before;
        let waited = self.waited / self.job.profile.length_us;
        self.past = Past { decision: Some(decision), waited, changed, surprise };
        Outcome { stall, changed }
    }

    /// Ends the iteration and begins the next, which has this weather.
    pub fn turn(&mut self, weather: Weather) -> Ended {
        let end = self.state.turn(&self.job.graph);
        let ended = Ended { length_us: end - self.began, changes: self.changes };
        self.surprises.0 += self.weather.surprises.iter().filter(|&&comes| comes).count() as u32;
        self.surprises.1 += self.job.graph.stages as u32;
        (self.began, self.at, self.changes) = (end, 0, 0);
        self.weather = weather;
        self.decided.fill(None);
        self.expected_end = self.look_ahead();
        ended
    }

    /// Whether the controller is asked about a request that begins.
    fn must_ask(&mut self, number: usize) -> bool {
        if self.decided[number].is_some() {
            return false;
        }
        let call = first_call(&self.job, number);
        let alone = |&stage: &u8| self.state.ports[usize::from(stage)].serves == Serves::One(call.axis);
        if call.stages.iter().all(alone) {
            // What fits can be expected without asking.
            self.decided[number] = Some(Decision::RULE);
            return false;
        }
        true
    }

    /// Lets what the profile does not hold come before the request that begins; whether it must be decided.
    fn comes_unexpected(&mut self, number: usize) -> bool {
        if !self.weather.surprises[number] || self.surprise == Surprise::Done {
            self.surprise = Surprise::None;
            return false;
        }
        let (axis, stage) = (first_call(&self.job, number).axis, first_call(&self.job, number).stages[0]);
        let decision = self.decided[number].unwrap_or(Decision::RULE);
        if self.surprise == Surprise::None {
            self.surprise = Surprise::Expected;
            let provisions = decision.provision && decision.route != Route::Host;
            let delay = self.job.fabric.delay_us;
            let from = self.state.ports[usize::from(stage)].idle_from();
            if provisions && self.state.expect(stage, axis, decision.route, delay) {
                self.changes += 1;
                let lit = from + delay;
                let ran = Ran { ready: from, start: lit, end: lit, changed: 1, changed_at: from };
                let (op, route, stages) = (None, decision.route, [stage].into());
                if let Some(log) = &mut self.log {
                    log.push(Event { op, stages, axis, route, ran });
                }
            }
        }
        let port = self.state.ports[usize::from(stage)];
        if port.serves == Serves::One(Axis::Data) {
            self.interject(number, Decision::DEMAND);
            return false;
        }
        true
    }

    /// Runs the call that the profile does not hold before a request, which waits for it.
    fn interject(&mut self, number: usize, decision: Decision) {
        self.surprise = Surprise::Done;
        let op = self.job.profile.requests[number].ops[0] as usize;
        let call = surprise_call(&self.job, number);
        let issued = self.state.issued(&self.job.graph, op);
        let ran = self.state.call(&call, issued, &self.job.fabric, decision);
        self.changes += ran.changed;
        self.waited = ran.end - ran.ready - self.job.fabric.micros(&call, Route::Optical);
        note(&mut self.log, None, &call, decision.route, ran);
        // Where it has taken the ports away, what comes next is a new question.
        let next = first_call(&self.job, number);
        let route = self.decided[number].map_or(Route::Optical, |decided| decided.route);
        let fits = |&stage: &u8| self.state.ports[usize::from(stage)].serves.fits(next.axis, route);
        if !next.stages.iter().all(fits) {
            self.decided[number] = None;
        }
    }

    /// Runs a call of a request as decided.
    fn carry(&mut self, op: usize, number: usize) {
        let decision = self.decided[number].unwrap_or(Decision::RULE);
        let graph = Arc::clone(&self.job.graph);
        let Work::Call(call) = &graph.ops[op].work else { return };
        let issued = self.state.issued(&graph, op);
        let begins = self.job.profile.requests[number].ops[0] as usize == op;
        // A call that came before it has ended first: they are of one program.
        let issued = if begins && self.weather.surprises[number] {
            issued.max(self.state.lines[data_line(&self.job, number)])
        } else {
            issued
        };
        if begins {
            self.learn(number, issued);
        }
        let ran = self.state.call(call, issued, &self.job.fabric, decision);
        self.changes += ran.changed;
        self.waited = ran.end - ran.ready - self.job.fabric.micros(call, Route::Optical);
        self.state.moments[graph.end_of(op)] = ran.end;
        note(&mut self.log, Some(op as u32), call, decision.route, ran);
        if begins {
            self.surprise = Surprise::None;
        }
    }

    /// Remembers how long the window before a request was this time.
    fn learn(&mut self, number: usize, issued: f64) {
        let call = first_call(&self.job, number);
        let idle = call.stages.iter().map(|&stage| self.state.ports[usize::from(stage)].busy_until);
        let window = (issued - idle.fold(0.0, f64::max)).max(0.0);
        let ratio = (window / self.job.profile.requests[number].window_us.max(1.0)).min(4.0);
        let [mean, deviation] = &mut self.seen[number];
        *deviation += RECENT * ((ratio - *mean).abs() - *deviation);
        *mean += RECENT * (ratio - *mean);
    }
}

fn note(log: &mut Option<Vec<Event>>, op: Option<u32>, call: &Call, route: Route, ran: Ran) {
    if let Some(log) = log {
        log.push(Event { op, stages: call.stages.clone(), axis: call.axis, route, ran });
    }
}
