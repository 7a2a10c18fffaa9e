//! The words of `export`.

use std::path::PathBuf;

use clap::ValueEnum;
use dynamiccl_env::nccl::Version;
use serde::Serialize;

use super::numbers::{number, whole};
use super::shared::{GraphsArgs, MachineArgs};

/// Words of `export`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl export --run checkpoints/stage1__s1__20261115T103310Z --out mine.safetensors
    dynamiccl export --out mine.safetensors --history job.jsonl
    dynamiccl export --policy a.safetensors --out b.safetensors --calibrate-guard
    dynamiccl export --out careful.safetensors --margin 0
    dynamiccl export --policy a.safetensors --out t.csv --format nccl-csv --cluster aws_p5 --nodes 4

The table is for NVIDIA's example tuner (NCCL_TUNER_CONFIG_FILE=t.conf). It holds on this machine, for
communicators of this size, and cannot say chunk sizes or threads.

", exit_codes!()))]
pub struct ExportArgs {
    /// Policy to export [default: the one that comes with the program]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Run whose policy to export: what it left behind, or the best so far
    #[arg(long, value_name = "DIR", conflicts_with = "policy")]
    pub run: Option<PathBuf>,
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Policy)]
    pub format: ExportFormat,
    /// Recording of the machine that the policy is to remember: our own lines or NCCL inspector's
    #[arg(long, value_name = "TRACE")]
    pub history: Option<PathBuf>,
    /// Judge several margins of the guard in worlds of their own and write the policy with the best: the lowest
    /// regret whose worst cell is at least 0.98 of NCCL
    #[arg(long)]
    pub calibrate_guard: bool,
    /// Write the policy with this margin: how many spreads of the gain it expects it must exceed before it departs
    /// from NCCL; larger is more careful
    #[arg(long, value_name = "SPREADS", value_parser = number::<f32>, conflicts_with = "calibrate_guard")]
    pub margin: Option<f32>,
    /// Worlds in which margins are judged
    #[arg(long, value_name = "N", default_value_t = 4, requires = "calibrate_guard")]
    #[arg(value_parser = whole::<u32>(1..=1000))]
    pub worlds: u32,
    /// Write what the policy has reached into it: the first tuner of this document of eval --json
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Write the seeds of the runs among which the policy was chosen into it
    #[arg(long, value_name = "SEEDS", value_delimiter = ',', value_parser = whole::<u64>(..))]
    pub among: Vec<u64>,
    /// The machine: of the table, of a recording that names none, and of --calibrate-guard where it is for one.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// NCCL's graphs.
    #[command(flatten)]
    pub graphs: GraphsArgs,
    /// Number of nodes that the table is for
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub nodes: Option<u32>,
    /// GPUs used per node [default: all of them]
    #[arg(long, value_name = "G", value_parser = whole::<u32>(1..))]
    pub ranks_per_node: Option<u32>,
    /// NCCL release that the table is for: 2.28, 2.29 or 2.30 [default: 2.30]
    #[arg(long, value_name = "RELEASE")]
    pub nccl: Option<Version>,
}

/// What can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A policy to deploy
    Policy,
    /// A table for NVIDIA's example tuner
    NcclCsv,
}
