//! The last word of `train`: where the policy is, and what it is worth.

use std::fmt;

use dynamiccl_agent::run::POLICY;
use serde::Serialize;

use super::Job;
use super::lesson::Lesson;
use crate::commands::machine::name;

/// The last line of `train --json`.
#[derive(Debug, Serialize)]
pub struct Closing<D> {
    done: bool,
    run: String,
    policy: String,
    seconds: f64,
    steps: u64,
    sps: f64,
    eval: D,
}

impl<D> Closing<D> {
    /// What there is to say about a run that is done.
    pub fn new<L: Lesson>(job: &Job<L>, steps: u64, sps: f64, eval: D) -> Self {
        Closing {
            done: true,
            run: name(job.run.folder()),
            policy: name(&job.run.path(POLICY)),
            seconds: job.recorder.seconds(),
            steps,
            sps,
            eval,
        }
    }
}

impl<D: fmt::Display> fmt::Display for Closing<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Closing { run, policy, seconds, steps, sps, eval, .. } = self;
        writeln!(f, "# {steps} steps in {seconds:.0} s, {sps:.0} steps/s, run {run}")?;
        write!(f, "{eval}")?;
        writeln!(f, "         wrote {policy}")
    }
}
