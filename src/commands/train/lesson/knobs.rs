//! NCCL's knobs: the policy is judged as `eval` does it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use dynamiccl_agent::run::{POLICY, policy};
use dynamiccl_agent::subject::{Knobs, Subject};
use dynamiccl_env::curriculum::{Curriculum, Stage};
use dynamiccl_env::evaluate::{HELD_OUT, TierReport};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::network::Weights;
use dynamiccl_synth::library::Library;
use serde::Serialize;

use super::{Column, Ended, Lesson};
use crate::args::{Args, Command, EvalArgs, TrainArgs};
use crate::commands::eval;
use crate::commands::train::Job;
use crate::session::{Session, USUAL_SEED};

/// The document of `eval`, and the policy's tiers where they are found without searching.
#[derive(Debug, Serialize)]
pub struct Judged {
    tiers: Vec<TierReport>,
    #[serde(flatten)]
    document: eval::Document,
}

impl std::fmt::Display for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.document.fmt(f)
    }
}

impl Lesson for Knobs {
    type Document = Judged;

    fn load(curriculum: &str, constants: &str) -> Result<Self> {
        let constants = Arc::new(ConstantsFile::load(constants)?);
        let schedules = Some(Arc::new(Library::new()) as _);
        Ok(Knobs { curriculum: Curriculum::load(curriculum)?, constants, schedules })
    }

    fn check(&self, args: &TrainArgs) -> Result<()> {
        let words = words("none".into(), ConstantsFile::USUAL, &self.stages(), args)?;
        eval::check(&words).context("judging the policy at the end")
    }

    fn columns(&self) -> Vec<Column> {
        let stages = self.stages();
        let tiers: BTreeSet<u8> = stages.iter().flat_map(|stage| stage.file.tiers.iter().copied()).collect();
        let tier = |tier: u8| {
            let place = format!("tier{tier}");
            Column { title: place.clone(), figure: Knobs::WATCHED, place }
        };
        let hold = Column { title: "hold".to_owned(), figure: "regret_hold", place: "all".to_owned() };
        tiers.into_iter().map(tier).chain([hold]).collect()
    }

    /// On the tiers of the curriculum and with the constants of the run; for the rest as `eval` does where nobody says.
    fn conclude(job: &Job<Self>, _: &Weights, args: &TrainArgs, session: &Session) -> Result<Ended<Judged>> {
        let constants = &job.run.settings().constants;
        let words = words(job.run.path(POLICY).into(), constants, job.training.stages(), args)?;
        let document = eval::judge(&words, USUAL_SEED, session).context("judging the policy")?;
        let results = policy::results(&document.report);
        let tiers = document.report.tuners.first().map_or_else(Vec::new, |policy| policy.tiers.clone());
        Ok(Ended { document: Judged { tiers, document }, command: "eval", results })
    }
}

fn words(policy: OsString, constants: &str, stages: &[Arc<Stage>], args: &TrainArgs) -> Result<EvalArgs> {
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
    say("--constants", constants.to_owned());
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
