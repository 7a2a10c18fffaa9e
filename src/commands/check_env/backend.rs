//! Which environment is checked, and how it is made.
//!
//! This is the only place that knows the environments by name: each arm makes one and hands it to the same
//! check.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::gym::check::Report;
use dynamiccl_env::job::Job;
use dynamiccl_env::lived::Limits;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::rails::{RailsEnv, RailsStage};
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::Swept;
use dynamiccl_env::trace::Trace;
use dynamiccl_env::wan::{WanCurriculum, WanEnv};

use super::Plan;
use crate::args::{CheckEnvArgs, EnvKind};
use crate::commands::live::lived;
use crate::exit::Ending;

/// The recording that is replayed where none is given, and its name.
const EXAMPLE: (&str, &str) = (include_str!("example.jsonl"), "example.jsonl");

/// Checks the environment that the words name; how it ended where this is another rank than the first, whose work is done.
pub fn check(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Result<Report, Ending>> {
    let ranks = args.job.ranks.is_some() || args.job.share_gpu;
    ensure!(!ranks || args.env == EnvKind::Live, "--ranks and --share-gpu go with check-env live");
    let drawn = args.curriculum.is_none() || args.draws();
    ensure!(
        drawn,
        "--curriculum goes with what is drawn from it: check-env sim, wan, rails, or trace --trace"
    );
    let report = match args.env {
        EnvKind::Sim => sim(args, plan),
        EnvKind::Trace if let Some(path) = &args.sweep => swept(path, args, plan),
        EnvKind::Trace => recorded(args, plan),
        EnvKind::Wan => wan(args, plan),
        EnvKind::Rails => rails(args, plan),
        EnvKind::Live => return live(args, plan),
    };
    report.map(Ok)
}

fn sim(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    no_recording(args)?;
    let (curriculum, constants) = (Curriculum::load(args.curriculum())?, Arc::new(ConstantsFile::full()));
    plan.check(|| Ok(SimEnv::mixed(curriculum.stages.iter().cloned(), Arc::clone(&constants))))
}

fn recorded(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    let (curriculum, constants) = (Curriculum::load(args.curriculum())?, Arc::new(ConstantsFile::full()));
    let trace = trace(args.trace.as_deref())?;
    trace.warnings.iter().for_each(|warning| plan.session.output.note(format_args!("{warning}")));
    let job = Job::replay(&trace, args.cluster.as_deref())?;
    let stage = &curriculum.stages[0];
    plan.check(|| Ok(SimEnv::of_job(job.clone(), stage, Arc::clone(&constants))))
}

fn swept(path: &Path, args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    let cluster = args.cluster.as_deref().map(Cluster::load).transpose()?;
    let (sweeps, constants) = (Swept::read(path, cluster.as_ref())?, Arc::new(ConstantsFile::full()));
    let notes = sweeps.iter().flat_map(|swept| swept.notes());
    notes.for_each(|note| plan.session.output.note(format_args!("{note}")));
    plan.check(|| Ok(SimEnv::of_sweeps(sweeps.iter().cloned(), None, Arc::clone(&constants))))
}

fn wan(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    no_recording(args)?;
    let curriculum = Arc::new(WanCurriculum::load(args.curriculum())?);
    plan.check(|| Ok(WanEnv::new(Arc::clone(&curriculum))))
}

fn rails(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    no_recording(args)?;
    let stage = Arc::new(RailsStage::load(args.curriculum())?);
    plan.check(|| Ok(RailsEnv::new(Arc::clone(&stage))))
}

/// Times are what ranks say, so that no two are alike: each launch is called once, and that time stands for all that follow.
fn live(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Result<Report, Ending>> {
    ensure!(args.trace.is_none() && args.sweep.is_none(), "--trace and --sweep go with check-env trace");
    let limits = Limits { slowdown: f64::INFINITY, most: 1, doubts: 0.0, lasts: None };
    let lived = lived::start(&args.job, &args.calls, args.cluster.as_deref(), limits, plan.session)?;
    let lived = match lived {
        Ok(lived) => lived,
        Err(ending) => return Ok(Err(ending)),
    };
    let constants = Arc::new(ConstantsFile::full());
    plan.check(|| Ok(SimEnv::of_live(Arc::clone(&lived), None, Arc::clone(&constants)))).map(Ok)
}

fn no_recording(args: &CheckEnvArgs) -> Result<()> {
    ensure!(
        args.trace.is_none() && args.sweep.is_none() && args.cluster.is_none(),
        "--trace, --sweep and --cluster go with check-env trace"
    );
    Ok(())
}

fn trace(file: Option<&Path>) -> Result<Trace> {
    let Some(file) = file else {
        let (text, name) = EXAMPLE;
        return Ok(Trace::read_from(text.as_bytes(), Path::new(name))?);
    };
    Ok(Trace::read(file)?)
}
