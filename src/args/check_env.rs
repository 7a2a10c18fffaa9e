//! The words of `check-env`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::live::{CallsArgs, JobArgs};
use super::numbers::whole;

/// Words of `check-env`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl check-env trace --trace job.jsonl --cluster dgx_h100
    dynamiccl check-env sim --curriculum smoke --steps 20000
    dynamiccl check-env trace --trace job.jsonl --json
    dynamiccl check-env rails --steps 20000
    dynamiccl check-env wan
    dynamiccl check-env trace --sweep loopback_4ranks.csv
    dynamiccl check-env live --ranks 2 --share-gpu --sizes 1K,64K

", exit_codes!()))]
pub struct CheckEnvArgs {
    /// Environment
    #[arg(value_name = "ENV", value_enum)]
    pub env: EnvKind,
    /// Curriculum of the simulated jobs: a name, or a file ending in .toml [default: smoke; wan or rails for these]
    #[arg(long, value_name = "NAME|FILE")]
    pub curriculum: Option<String>,
    /// Recording to replay: our own lines, NCCL inspector's, or the folder of what the plugin recorded [default: a
    /// small one that we bring along]
    #[arg(long, value_name = "FILE|DIR")]
    pub trace: Option<PathBuf>,
    /// Recorded sweep to take times from, instead of a recording to replay: a file, or a folder of them
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "trace")]
    pub sweep: Option<PathBuf>,
    /// Cluster that the recording replays on, or the sweep was measured on [default: the one that it names, or ranks
    /// that share one H200]
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,
    /// Random legal steps to take
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole::<u64>(1..))]
    pub steps: u64,
    /// The ranks.
    #[command(flatten)]
    pub job: JobArgs,
    /// The calls.
    #[command(flatten)]
    pub calls: CallsArgs,
}

/// An environment that can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvKind {
    /// Jobs in the simulator
    Sim,
    /// A recorded job, or a recorded sweep
    Trace,
    /// Collectives across datacentres
    Wan,
    /// Jobs over photonic rails
    Rails,
    /// Calls on real ranks; every launch is called once, and remembered
    Live,
}

impl CheckEnvArgs {
    /// Whether a curriculum says what its jobs are like.
    pub fn draws(&self) -> bool {
        match self.env {
            EnvKind::Sim | EnvKind::Wan | EnvKind::Rails => true,
            EnvKind::Trace => self.sweep.is_none(),
            EnvKind::Live => false,
        }
    }

    /// The curriculum that was named, or the one that goes with the environment.
    pub fn curriculum(&self) -> &str {
        let usual = match self.env {
            EnvKind::Wan => "wan",
            EnvKind::Rails => "rails",
            EnvKind::Sim | EnvKind::Trace | EnvKind::Live => "smoke",
        };
        self.curriculum.as_deref().unwrap_or(usual)
    }
}
