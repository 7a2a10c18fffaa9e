//! The words of `eval`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::ArgPredicate;
use dynamiccl_env::nccl::Version;

use super::numbers::whole;
use super::shared::{ConstantsArgs, RuntimeArgs};

/// The workload that is no jobs.
pub const CELLS: &str = "cells";
/// Who is judged on it where nobody says.
const ON_CELLS: &str = "nccl,oracle,bayes,mraco,mraco_online,coordinate,bandit,random";
/// And on jobs and sweeps, which have no cells that `bayes` could know the best of.
const ON_JOBS: &str = "nccl,oracle,mraco,mraco_online,coordinate,bandit,random";

/// Words of `eval`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl eval
    dynamiccl eval --policy none --against nccl,coordinate --tiers 2 --clusters dgx_a100,dgx_h100
    dynamiccl eval --policy mine.safetensors --csv cells.csv --markdown result.md --html result.html
    dynamiccl eval --policy mine.safetensors --against nccl --fail-below 1.02
    dynamiccl eval --policy mine.safetensors --proof tiers
    dynamiccl eval --policy none --against nccl,oracle,bandit --workload stage2 --worlds 4
    dynamiccl eval --runtime msccl --against nccl,oracle --clusters dgx_a100 --nodes 1,2

", exit_codes!()))]
pub struct EvalArgs {
    /// Frozen policy, or table in the form of NVIDIA's example tuner, to judge; listed first; "none" for none
    /// [default: the shipped policy]
    #[arg(long, value_name = "FILE|none")]
    pub policy: Option<PathBuf>,
    /// Tuners to judge, separated by commas: shipped, nccl, oracle, bayes, random, fixed:ALGO/PROTO[/CHANNELS],
    /// mraco, mraco_online, coordinate, bandit, tpe, epsilon, grid, random_search, or files like that of --policy; bayes
    /// is of cells alone, and by default left out elsewhere
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_value = ON_CELLS)]
    #[arg(default_value_ifs = [
        ("workload", ArgPredicate::Equals(CELLS.into()), ON_CELLS),
        ("workload", ArgPredicate::IsPresent, ON_JOBS),
    ])]
    pub against: Vec<String>,
    /// Tiers of the machines, separated by commas [default: 1,2,3,4]
    #[arg(long, value_name = "TIERS", value_delimiter = ',')]
    #[arg(value_parser = whole::<u8>(0..=4))]
    pub tiers: Vec<u8>,
    /// Clusters by name or file, separated by commas [default: all that come with the program, but for the
    /// testbeds a40_8_nvlink, a40_8_pcie, photonic_a100 and wan100g_1gpu]
    #[arg(long, value_name = "NAMES|FILES", value_delimiter = ',')]
    pub clusters: Vec<String>,
    /// Node counts, separated by commas; those for which a cluster has no graphs are left out [default: 1,2,8]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(value_parser = whole::<u32>(1..))]
    pub nodes: Vec<u32>,
    /// Release of NCCL on these clusters: 2.28, 2.29 or 2.30 [default: 2.30]
    #[arg(long, value_name = "RELEASE")]
    pub nccl: Option<Version>,
    /// Calls to judge on: "cells" (every collective in every size), a curriculum whose jobs are drawn, a recorded
    /// job, the folder of what the plugin recorded of one, or a recorded sweep (.csv) or a folder of them, whose
    /// measured times then count
    #[arg(long, value_name = "cells|NAME|FILE|DIR", default_value = CELLS)]
    pub workload: String,
    /// With a recorded sweep: tell tuners what its machine is, as a deployment file tells the plugin [default: only what
    /// NCCL says]
    #[arg(long)]
    pub told: bool,
    /// Worlds of each seed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<u32>(1..=1000))]
    pub worlds: u32,
    /// Independent repetitions; ± is over them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=100))]
    pub seeds: u32,
    /// Features or whole blocks, separated by commas, that no tuner is told: "unknown" for policies
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hide: Vec<String>,
    /// Policies go by what their network remembers alone, and keep no notes of what each kind of call has taken
    #[arg(long)]
    pub without_notes: bool,
    /// Show instead what the policy has understood: "tiers" has the same calls at each tier, calls that NCCL
    /// cannot tell apart, and what hiding the tier costs; answers no (exit code 1) where it falls short
    #[arg(long, value_name = "WHAT", value_enum)]
    #[arg(conflicts_with_all = ["against", "tiers", "clusters", "nodes", "workload", "told", "hide", "runtime", "nccl"])]
    #[arg(conflicts_with_all = ["csv", "markdown", "html", "fail_below"])]
    pub proof: Option<Proof>,
    /// Write every cell of every tuner to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the table as Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write everything as one page with plots to this file, readable without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Answer no (exit code 1) where the first tuner's overall speed-up is below this
    #[arg(long, value_name = "X", value_parser = speedup)]
    pub fail_below: Option<f64>,
    /// Whether synthesised schedules can run.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}

/// What can be shown of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Proof {
    /// That it knows what a tier is
    Tiers,
}

/// A speed-up that something can be above or below.
fn speedup(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a speed-up is a number above 0, like 1.02".to_owned())
}
