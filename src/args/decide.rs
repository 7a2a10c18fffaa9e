//! The words of `decide`.

use std::path::PathBuf;

use dynamiccl_env::nccl::Version;
use dynamiccl_spec::{Bytes, Collective};

use super::numbers::whole;
use super::shared::{ConstantsArgs, MachineArgs, RuntimeArgs, assignment, tuned_collective};

/// Words of `decide`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl decide --cluster dgx_a100 --nodes 2
    dynamiccl decide --policy tuner.csv --cluster aws_p5 --nodes 4 --collective allreduce
    dynamiccl decide --policy policy.safetensors --cluster dgx_h100 --nodes 1 --untold --json

", exit_codes!()))]
pub struct DecideArgs {
    /// Frozen policy, or a table in the form of NVIDIA's example tuner [default: the policy that comes with the
    /// program]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// On what.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub nodes: u32,
    /// GPUs used per node [default: all of them]
    #[arg(long, value_name = "G", value_parser = whole::<u32>(1..))]
    pub ranks_per_node: Option<u32>,
    /// Collective: broadcast, reduce, allgather, reducescatter or allreduce; may be repeated [default: all]
    #[arg(long, value_name = "K", value_parser = tuned_collective)]
    pub collective: Vec<Collective>,
    /// Size as nccl-tests counts it; may be repeated [default: 1K to 1G in powers of 4]
    #[arg(long, value_name = "B")]
    pub bytes: Vec<Bytes>,
    /// Tell the policy nothing but what NCCL says, as in a job without a context file
    #[arg(long)]
    pub untold: bool,
    /// NCCL release: 2.28, 2.29 or 2.30
    #[arg(long, value_name = "RELEASE", default_value_t)]
    pub nccl: Version,
    /// Set one of NCCL's variables, for instance NCCL_ALGO=Ring; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,
    /// Whether a synthesised schedule can run.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// Constants of the performance model, for the simulated times
    #[command(flatten)]
    pub constants: ConstantsArgs,
}
