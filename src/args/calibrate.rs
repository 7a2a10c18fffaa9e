//! The words of `calibrate`.

use std::path::PathBuf;

use dynamiccl_env::nccl::Version;
use dynamiccl_spec::Collective;

use super::numbers::whole;
use super::shared::{ConstantsArgs, GraphsArgs, MachineArgs, tuned_collective};

/// Words of `calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    all_reduce_perf -b 1K -e 1G -f 4 -g 8 > node.log
    dynamiccl calibrate --log node.log --cluster dgx_h100 --out mine.toml
    dynamiccl calibrate --log pair.log --cluster ./mine.toml --out mine.toml
    dynamiccl calibrate --sweep loopback_2ranks.csv --cluster h200_shared --out mine.toml
    dynamiccl simulate --cluster ./mine.toml --nodes 1 --collective allreduce --bytes 1M

", exit_codes!()))]
pub struct CalibrateArgs {
    /// Output of nccl-tests, as text or as JSON (-J); may be repeated for logs of one communicator
    #[arg(long, value_name = "FILE", required_unless_present = "sweep", conflicts_with = "sweep")]
    pub log: Vec<PathBuf>,
    /// File of `live sweep`, or a folder of them, of any ranks and links; may be repeated
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["graph", "ranks_per_node", "collective"])]
    pub sweep: Vec<PathBuf>,
    /// Where to start from.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// NCCL's graphs.
    #[command(flatten)]
    pub graphs: GraphsArgs,
    /// Cluster file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Number of nodes, where the log does not say it or counts them otherwise than NCCL does
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub nodes: Option<u32>,
    /// GPUs used per node [default: from the log, else all of them]
    #[arg(long, value_name = "G", value_parser = whole::<u32>(1..))]
    pub ranks_per_node: Option<u32>,
    /// Collective that was measured, where the log does not say it
    #[arg(long, value_name = "K", value_parser = tuned_collective)]
    pub collective: Option<Collective>,
    /// NCCL release that was measured: 2.28, 2.29 or 2.30 [default: as the file says, else 2.30 for a log and 2.28 for a sweep]
    #[arg(long, value_name = "RELEASE")]
    pub nccl: Option<Version>,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}
