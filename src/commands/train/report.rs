//! The last word of `train`: where the policy is, and what it is worth.

use std::fmt;

use dynamiccl_agent::run::POLICY;
use dynamiccl_env::evaluate::TierReport;
use serde::Serialize;

use super::Job;
use crate::commands::eval;
use crate::commands::machine::name;

/// The last line of `train --json`.
#[derive(Debug, Serialize)]
pub struct Closing {
    done: bool,
    run: String,
    policy: String,
    seconds: f64,
    steps: u64,
    sps: f64,
    eval: Judged,
}

/// The document of `eval`, and the policy's tiers where they are found without searching.
#[derive(Debug, Serialize)]
struct Judged {
    tiers: Vec<TierReport>,
    #[serde(flatten)]
    document: eval::Document,
}

impl Closing {
    /// What there is to say about a run that is done.
    pub fn new(job: &Job, steps: u64, sps: f64, document: eval::Document) -> Self {
        let tiers = document.report.tuners.first().map_or_else(Vec::new, |policy| policy.tiers.clone());
        Closing {
            done: true,
            run: name(job.run.folder()),
            policy: name(&job.run.path(POLICY)),
            seconds: job.recorder.seconds(),
            steps,
            sps,
            eval: Judged { tiers, document },
        }
    }
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Closing { run, policy, seconds, steps, sps, eval, .. } = self;
        writeln!(f, "# {steps} steps in {seconds:.0} s, {sps:.0} steps/s, run {run}")?;
        write!(f, "{}", eval.document)?;
        writeln!(f, "         wrote {policy}")
    }
}
