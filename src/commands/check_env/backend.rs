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
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::Swept;
use dynamiccl_env::trace::Trace;

use super::Plan;
use crate::args::{CheckEnvArgs, EnvKind};

/// The recording that is replayed where none is given, and its name.
const EXAMPLE: (&str, &str) = (include_str!("example.jsonl"), "example.jsonl");

/// Checks the environment that the words name.
pub fn check(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    let curriculum = Curriculum::load(&args.curriculum)?;
    let constants = Arc::new(ConstantsFile::full());
    match args.env {
        EnvKind::Sim => {
            ensure!(
                args.trace.is_none() && args.sweep.is_none() && args.cluster.is_none(),
                "--trace, --sweep and --cluster go with check-env trace"
            );
            plan.check(|| Ok(SimEnv::mixed(curriculum.stages.iter().cloned(), Arc::clone(&constants))))
        }
        EnvKind::Trace if let Some(path) = &args.sweep => {
            let cluster = args.cluster.as_deref().map(Cluster::load).transpose()?;
            let sweeps = Swept::read(path, cluster.as_ref())?;
            plan.check(|| Ok(SimEnv::of_sweeps(sweeps.iter().cloned(), None, Arc::clone(&constants))))
        }
        EnvKind::Trace => {
            let trace = trace(args.trace.as_deref())?;
            trace.warnings.iter().for_each(|warning| plan.session.output.note(format_args!("{warning}")));
            let job = Job::replay(&trace, args.cluster.as_deref())?;
            let stage = &curriculum.stages[0];
            plan.check(|| Ok(SimEnv::of_job(job.clone(), stage, Arc::clone(&constants))))
        }
    }
}

fn trace(file: Option<&Path>) -> Result<Trace> {
    let Some(file) = file else {
        let (text, name) = EXAMPLE;
        return Ok(Trace::read_from(text.as_bytes(), Path::new(name))?);
    };
    Ok(Trace::read(file)?)
}
