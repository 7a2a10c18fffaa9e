//! After the last step: the best policy is written, judged as `eval` does it, and written again with what it
//! reached.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use dynamiccl_agent::run::{EVAL, POLICY, policy};
use dynamiccl_env::curriculum::Stage;
use dynamiccl_env::evaluate::HELD_OUT;

use super::Job;
use super::report::Closing;
use crate::args::{Args, Command, EvalArgs, TrainArgs};
use crate::commands::eval::{self, Document};
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
    let judged = judge(job, args, session)?;
    policy::write(&path, weights, about(policy::results(&judged.report)))?;
    let document = session.output.document("eval", USUAL_SEED, &judged)?;
    job.run.write(EVAL, document.as_bytes())?;
    session.output.report("train", job.run.settings().seed, &Closing::new(job, steps, sps, judged))
}

/// Judges the policy on the tiers of the curriculum, with what `eval` does where nobody says.
fn judge(job: &Job, args: &TrainArgs, session: &Session) -> Result<Document> {
    let words = words(job.run.path(POLICY).into(), job.training.stages(), args)?;
    eval::judge(&words, USUAL_SEED, session).context("judging the policy")
}

/// Whether there will be a judgement: better to know it before hours of training than after.
pub fn check(stages: &[Arc<Stage>], args: &TrainArgs) -> Result<()> {
    eval::check(&words("none".into(), stages, args)?).context("judging the policy at the end")
}

fn words(policy: OsString, stages: &[Arc<Stage>], args: &TrainArgs) -> Result<EvalArgs> {
    let mut tiers: Vec<u8> = stages.iter().flat_map(|stage| stage.file.tiers.iter().copied()).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let tiers: Vec<String> = tiers.iter().map(u8::to_string).collect();
    let mut words = vec!["dynamiccl".into(), "eval".into(), "--policy".into(), policy];
    let mut say = |flag: &str, value: String| words.extend([flag.into(), value.into()]);
    say("--against", args.against.join(","));
    say("--tiers", tiers.join(","));
    say("--worlds", args.eval_worlds.to_string());
    say("--seeds", args.eval_seeds.to_string());
    say("--clusters", clusters(stages, args).join(","));
    let Command::Eval(words) = Args::try_parse_from(words)?.command else { bail!("eval is a command") };
    Ok(words)
}

/// The clusters of the judgement: those of the curriculum, and those that no curriculum contains.
fn clusters(stages: &[Arc<Stage>], args: &TrainArgs) -> Vec<String> {
    if !args.eval_clusters.is_empty() {
        return args.eval_clusters.clone();
    }
    let machines = stages.iter().flat_map(|stage| &stage.file.clusters);
    let learned = machines.map(|machines| machines.name.clone());
    learned.chain(HELD_OUT.map(str::to_owned)).collect()
}
