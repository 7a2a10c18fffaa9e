//! The words of `live`.

use clap::Subcommand;

use super::live_train::LiveTrainArgs;

/// Words of `live`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl live train --sweep loopback_4ranks.csv --out mine.safetensors

", exit_codes!()))]
pub struct LiveArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LiveCommand,
}

/// What can be done with real NCCL.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Fit a policy to recorded sweeps; no GPU is needed
    Train(LiveTrainArgs),
}
