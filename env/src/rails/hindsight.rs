//! The best plan that a local search finds when it knows the iterations: what the path head and the control plane
//! can reach at all.
//!
//! It is not proven to be the best there is, so others may come out ahead of it; it is no controller that could
//! run, because it has seen what comes.

use super::baselines::Greedy;
use super::control::{Controller, Decision, Past, Request};
use super::harness::{Iterations, total};
use super::job::Job;

/// One answer for each request of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    name: &'static str,
    answers: Vec<Decision>,
    /// Whether each request was asked about.
    asked: Vec<bool>,
}

/// What a request can be answered with.
const ANSWERS: [Decision; 3] = [Decision::RULE, Decision::HOST, Decision::SPLIT];

impl Plan {
    /// The same answer to all requests of a job.
    fn always(job: &Job, decision: Decision) -> Plan {
        let requests = job.profile.requests.len();
        Plan { name: "hindsight", answers: vec![decision; requests], asked: vec![false; requests] }
    }

    /// What the rule of thumb answers.
    fn of_greedy(job: &Job, iterations: &Iterations) -> Plan {
        let mut heard = Heard(Plan::always(job, Decision::RULE));
        total(job, iterations, &mut heard);
        heard.0
    }

    /// Searches the best plan for these iterations of a job; `step` hears of every plan that is tried and stops with its
    /// error.
    pub fn search<X>(
        job: &Job,
        iterations: &Iterations,
        step: impl Fn() -> Result<(), X>,
    ) -> Result<Plan, X> {
        let mut best = (f64::INFINITY, Plan::always(job, Decision::RULE));
        for bulk in ANSWERS {
            for small in ANSWERS {
                let mut plan = Plan::always(job, bulk);
                for at in small_requests(job) {
                    plan.answers[at] = small;
                }
                step()?;
                keep_better(job, iterations, plan, &mut best);
            }
        }
        keep_better(job, iterations, Plan::of_greedy(job, iterations), &mut best);
        for kind in kinds(job) {
            for answer in ANSWERS {
                let mut plan = best.1.clone();
                kind.iter().for_each(|&at| plan.answers[at] = answer);
                step()?;
                keep_better(job, iterations, plan, &mut best);
            }
        }
        while one_by_one(job, iterations, &mut best, &step)? {}
        Ok(best.1)
    }
}

/// Tries another answer for each request that was asked about; whether that helped noticeably.
fn one_by_one<X>(
    job: &Job,
    iterations: &Iterations,
    best: &mut (f64, Plan),
    step: impl Fn() -> Result<(), X>,
) -> Result<bool, X> {
    let before = best.0;
    for at in 0..best.1.answers.len() {
        for answer in ANSWERS {
            if best.1.asked[at] && best.1.answers[at] != answer {
                let mut plan = best.1.clone();
                plan.answers[at] = answer;
                step()?;
                keep_better(job, iterations, plan, best);
            }
        }
    }
    Ok(best.0 < before * (1.0 - 1e-3))
}

fn keep_better(job: &Job, iterations: &Iterations, mut plan: Plan, best: &mut (f64, Plan)) {
    plan.asked.fill(false);
    let micros = total(job, iterations, &mut plan).length_us;
    if micros < best.0 {
        *best = (micros, plan);
    }
}

/// Requests that are a synchronisation and hardly any bytes.
fn small_requests(job: &Job) -> Vec<usize> {
    let small = |at: &usize| job.profile.requests[*at].bytes < 1 << 20;
    (0..job.profile.requests.len()).filter(small).collect()
}

/// Requests that are alike: the same collective in the same phase.
fn kinds(job: &Job) -> Vec<Vec<usize>> {
    let mut kinds = std::collections::BTreeMap::new();
    for (at, request) in job.profile.requests.iter().enumerate() {
        if let Some(call) = job.graph.call(request.ops[0] as usize) {
            kinds.entry((call.collective, call.phase)).or_insert_with(Vec::new).push(at);
        }
    }
    kinds.into_values().collect()
}

/// The rule of thumb, whose answers are written down.
struct Heard(Plan);

impl Controller for Heard {
    fn name(&self) -> &str {
        Greedy.name()
    }

    fn decide(&mut self, request: &Request, past: &Past) -> Decision {
        let decision = Greedy.decide(request, past);
        if !request.surprise {
            self.0.answers[request.number] = decision;
        }
        decision
    }
}

impl Controller for Plan {
    fn name(&self) -> &str {
        self.name
    }

    fn decide(&mut self, request: &Request, _: &Past) -> Decision {
        if request.surprise {
            return Decision::HOST;
        }
        self.asked[request.number] = true;
        self.answers[request.number]
    }
}
