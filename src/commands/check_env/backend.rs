//! Which environment is checked, and how it is made.
//!
//! This is the only place that knows the environments by name: each arm makes one and hands it to the same
//! check.

use anyhow::{Result, bail};
use dynamiccl_env::gym::Tiny;
use dynamiccl_env::gym::check::Report;

use super::Plan;
use crate::args::{CheckEnvArgs, EnvKind};

/// Checks the environment that the words name.
pub fn check(args: &CheckEnvArgs, plan: &Plan<'_>) -> Result<Report> {
    match args.env {
        EnvKind::Tiny => plan.check(|| Ok(Tiny::default()), true),
        // PLUG IN: plan.check(|| Ok(SimEnv::new(curriculum.clone())?), true), the curriculum read from
        // args.curriculum before.
        EnvKind::Sim => bail!("sim: this build has no simulated environment; check tiny instead"),
        // PLUG IN: plan.check(|| Ok(TraceEnv::open(file)?), false), the file being args.trace.
        EnvKind::Trace => bail!("trace: this build has no environment of recordings; check tiny instead"),
    }
}
