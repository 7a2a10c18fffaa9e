//! Calls one after the other, whatever they come from, and how a tuner goes through them.
//!
//! The loop knows neither tables of cells nor running jobs: it asks for the next question, hands out
//! trials, runs what was chosen and tells the judge.

use dynamiccl_spec::{Decision, Knobs, Measured, Path, Query, Reason, Tuner};

use super::judge::Judge;
use crate::question::Question;

/// A true time, and its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// µs.
    pub micros: f64,
    /// ln µs.
    pub log: f64,
}

/// What a trial beside the job's own calls took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// As it was measured.
    pub measured: f64,
    /// Its true time.
    pub micros: f64,
}

/// What was made of a tuner's knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// The choice that they are; NCCL's own where they are not legal.
    pub choice: usize,
    /// Whether they are.
    pub legal: bool,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Its cell.
    pub cell: usize,
    /// What ran, as a number within the cell: equal for knobs that NCCL runs alike.
    pub ran: usize,
    /// The knobs that ran.
    pub knobs: Knobs,
    /// The true time of what ran.
    pub truth: Timed,
    /// That of NCCL's own choice.
    pub own: Timed,
    /// That of the fastest choice.
    pub best: Timed,
    /// As it was measured.
    pub measured: f64,
    /// Whether all ranks are told.
    pub told: bool,
}

/// Calls one after the other. A *choice* is a number that means something to the calls alone.
pub trait Calls {
    /// The next call; none where there is no other.
    fn next(&mut self) -> Option<Question>;

    /// What knobs are here.
    fn choose(&mut self, knobs: &Knobs) -> Pick;

    /// The choice with the smallest true time.
    fn fastest(&mut self) -> usize;

    /// Runs the call with other knobs; nothing where they cannot run.
    fn attempt(&mut self, knobs: &Knobs) -> Option<Trial>;

    /// Runs the call.
    fn run(&mut self, choice: usize) -> Outcome;

    /// Runs a call that NCCL does not tune.
    fn pass(&mut self) {}
}

/// Lets a tuner go through all calls. `held` is a tuner that is told nothing of them: whatever it measures
/// beside, it measures itself.
pub fn play(calls: &mut impl Calls, tuner: &mut dyn Tuner, held: bool, judge: &mut Judge<'_>) {
    tuner.begin();
    while let Some(question) = calls.next() {
        let query = question.query();
        if !question.is_tuned() {
            // Nothing is to be decided, but a tuner that remembers hears of it, and of what came of the call before.
            tuner.decide(&query, &mut |_| None);
            calls.pass();
            continue;
        }
        let mut tried = 0.0;
        let decision = tuner.decide(&query, &mut |knobs| {
            let trial = calls.attempt(knobs)?;
            tried += trial.micros;
            Some(trial.measured)
        });
        let Pick { choice, legal } = calls.choose(&decision.knobs);
        let outcome = calls.run(choice);
        let left = !legal || left_to_nccl(&decision);
        judge.call(&outcome, tried, left, estimate(&query, &decision));
        if !legal && decision.knobs.path == Path::Synthesised {
            judge.unrunnable(outcome.cell);
        }
        if outcome.told && !held {
            tuner.learn(&query, &Measured { knobs: outcome.knobs, micros: outcome.measured });
        }
    }
}

/// Lets whoever knows every true time go through all calls.
pub fn play_fastest(calls: &mut impl Calls, judge: &mut Judge<'_>) {
    while let Some(question) = calls.next() {
        if !question.is_tuned() {
            calls.pass();
            continue;
        }
        let choice = calls.fastest();
        judge.call(&calls.run(choice), 0.0, false, None);
    }
}

/// Whether a call was not the tuner's to choose.
fn left_to_nccl(decision: &Decision) -> bool {
    decision.reason != Reason::Policy
}

/// What the tuner believes the call to take, ln µs and one spread of it.
fn estimate(query: &Query<'_>, decision: &Decision) -> Option<(f64, f64)> {
    let by_nccl = decision.knobs.path != Path::Synthesised;
    let spread = f64::from(decision.spread.filter(|_| by_nccl)?);
    let pair = decision.knobs.pair.or(query.gated.own)?;
    let micros = decision.micros.get(pair)?;
    Some((dynamiccl_spec::math::ln(f64::from(micros).max(1e-3)), spread))
}
