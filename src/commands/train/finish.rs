//! After the last step: the best policy is written, judged as `eval` does it, and written again with what it
//! reached.

use anyhow::{Context, Result, ensure};
use dynamiccl_agent::run::{EVAL, POLICY, policy};
use dynamiccl_env::evaluate::Report;

use super::Job;
use super::report::Closing;
use crate::args::{ConstantsArgs, EvalArgs, TrainArgs};
use crate::commands::eval;
use crate::session::{Session, USUAL_SEED};

/// Ends a run.
pub fn finish(job: &mut Job, args: &TrainArgs, session: &Session) -> Result<()> {
    let steps = job.training.steps();
    let sps = job.recorder.rate(steps);
    let best = job.training.best();
    let weights = best.map_or_else(|| job.training.weights(), |best| best.weights.clone());
    let steps_of_best = best.map_or(steps, |best| best.step);
    let path = job.run.path(POLICY);
    let about = |results| policy::about(job.run.settings(), steps_of_best, results);
    policy::write(&path, weights.clone(), about(Vec::new()))?;
    let report = judge(job, args, session)?;
    policy::write(&path, weights, about(policy::results(&report)))?;
    let seed = job.run.settings().seed;
    let document = session.output.document(
        "eval",
        USUAL_SEED,
        &eval::Document { report: report.clone(), verdict: None },
    )?;
    job.run.write(EVAL, document.as_bytes())?;
    let closing = Closing::new(job, steps, sps, report);
    session.output.report("train", seed, &closing)
}

/// Judges the policy on the tiers of the curriculum, with the words that `eval` has where nobody says.
fn judge(job: &Job, args: &TrainArgs, session: &Session) -> Result<Report> {
    let mut tiers: Vec<u8> =
        job.training.stages().iter().flat_map(|stage| stage.file.tiers.iter().copied()).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let words = EvalArgs {
        policy: Some(job.run.path(POLICY)),
        against: args.against.clone(),
        tiers,
        clusters: args.eval_clusters.clone(),
        nodes: Vec::new(),
        workload: "cells".to_owned(),
        worlds: args.eval_worlds,
        seeds: args.eval_seeds,
        csv: None,
        markdown: None,
        html: None,
        fail_below: None,
        constants: ConstantsArgs { constants: "full".to_owned() },
    };
    let report = eval::judge(&words, USUAL_SEED, session).context("judging the policy")?;
    ensure!(!report.tuners.is_empty(), "nobody was judged");
    Ok(report)
}
