//! The words of `check-env`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

/// Words of `check-env`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl check-env trace --trace job.jsonl --cluster dgx_h100
    dynamiccl check-env sim --curriculum smoke --steps 20000
    dynamiccl check-env trace --trace job.jsonl --json
    dynamiccl check-env rails --steps 20000
    dynamiccl check-env wan

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
    /// Cluster that the recording replays on [default: the one that it names]
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,
    /// Random legal steps to take
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub steps: u64,
}

/// An environment that can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvKind {
    /// Jobs in the simulator
    Sim,
    /// A recorded job
    Trace,
    /// Collectives across datacentres
    Wan,
    /// Jobs over photonic rails
    Rails,
}

impl CheckEnvArgs {
    /// The curriculum that was named, or the one that goes with the environment.
    pub fn curriculum(&self) -> &str {
        let usual = match self.env {
            EnvKind::Wan => "wan",
            EnvKind::Rails => "rails",
            EnvKind::Sim | EnvKind::Trace => "smoke",
        };
        self.curriculum.as_deref().unwrap_or(usual)
    }
}
