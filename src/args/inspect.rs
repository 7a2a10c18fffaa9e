//! The words of `inspect`.

use std::path::PathBuf;

/// Words of `inspect`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl inspect
    dynamiccl inspect policy.safetensors
    dynamiccl inspect nccl_tuner.conf --json

A file that is whole and not for this build ends with 1, one that cannot be read with 2.

", exit_codes!()))]
pub struct InspectArgs {
    /// A policy, or a table of NVIDIA's example tuner [default: the policy that comes with the program]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}
