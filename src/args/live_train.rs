//! The words of `live train`.

use std::path::PathBuf;

use super::live::{CallsArgs, JobArgs};
use super::numbers::whole;

/// Words of `live train`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl live train --sweep loopback_4ranks.csv --out mine.safetensors --judge again.csv
    dynamiccl live train --policy old.safetensors --sweep sweeps --out mine.safetensors --seconds 30
    dynamiccl live train --sweep a.csv,b.csv --out mine.safetensors --fail-below 0.95 --json
    dynamiccl live train --ranks 2 --share-gpu --out mine.safetensors --calls 5000 --seconds 60

With --sweep no GPU is needed, and what comes out is the same for the same words and seed, unless --seconds end it. Without,
the policy decides calls on real ranks and learns from what they take. Ctrl-C writes the best so far.

", exit_codes!()))]
pub struct LiveTrainArgs {
    /// Policy to start from: a file, or "shipped"
    #[arg(long, value_name = "FILE|shipped", default_value = "shipped")]
    pub policy: String,
    /// Sweeps to fit it to, separated by commas: files as live sweep writes them, or folders of such [default: none; real
    /// ranks]
    #[arg(long, value_name = "FILES|DIRS", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["JobArgs", "CallsArgs"])]
    pub sweep: Vec<PathBuf>,
    /// Other sweeps to judge it on, to which it is not fitted
    #[arg(long, value_name = "FILES|DIRS", value_delimiter = ',')]
    pub judge: Vec<PathBuf>,
    /// Cluster that all of them were measured on [default: ranks that share one H200, each a host of its own]
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,
    /// File to write the policy to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// End after this many steps
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = whole::<u64>(1..))]
    pub steps: u64,
    /// End after this many seconds; on real ranks, from their first call on
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = whole::<u64>(1..))]
    pub seconds: u64,
    /// End when this share of what there is to win was won on every sweep, and no cell is below 0.97
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
    pub enough: f64,
    /// How far to doubt measured times: NCCL's choice is changed only for a gain beyond so many times what luck may do to
    /// both; 0 takes sweeps at their word, and assumes nothing of sizes between theirs
    #[arg(long, value_name = "N", default_value_t = 0.75, value_parser = doubts)]
    pub doubt: f64,
    /// Share of the environments that have simulated jobs, so that other machines are not forgotten
    #[arg(long, value_name = "SHARE", default_value_t = 0.25, value_parser = share)]
    pub simulated: f64,
    /// Curriculum whose last stage these jobs come from: a name, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "full")]
    pub curriculum: String,
    /// One setting, for instance optimiser.rate=[0.001,0.0001]; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads to work on; they change nothing but the time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    pub threads: Option<u16>,
    /// Answer no (exit code 1) where less than this share was won on a sweep
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub fail_below: Option<f64>,
    /// On real ranks: end after this many calls that the policy decided
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = whole::<u64>(1..))]
    #[arg(conflicts_with = "sweep")]
    pub calls: u64,
    /// On real ranks: do not call again what took more than so many times as long as NCCL's own choice
    #[arg(long, value_name = "TIMES", default_value_t = 2.0, value_parser = slowdown, conflicts_with = "sweep")]
    pub slowdown: f64,
    /// The ranks.
    #[command(flatten)]
    pub job: JobArgs,
    /// The calls.
    #[command(flatten)]
    pub of_ranks: CallsArgs,
}

fn slowdown(word: &str) -> Result<f64, String> {
    let bound = word.parse::<f64>().ok().filter(|bound| (1.0..=100.0).contains(bound));
    bound.ok_or_else(|| "a bound is a number from 1 to 100, like 2".to_owned())
}

fn doubts(word: &str) -> Result<f64, String> {
    let doubts = word.parse::<f64>().ok().filter(|doubts| (0.0..=10.0).contains(doubts));
    doubts.ok_or_else(|| "a doubt is a number from 0 to 10, like 0.75".to_owned())
}

fn share(word: &str) -> Result<f64, String> {
    let share = word.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1, like 0.95".to_owned())
}
