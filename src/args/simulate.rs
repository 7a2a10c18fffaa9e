//! The words of `simulate`.

use dynamiccl_env::nccl::Version;
use dynamiccl_spec::{Bytes, Collective};

use super::numbers::whole;
use super::shared::{ConstantsArgs, GraphsArgs, MachineArgs, RuntimeArgs, assignment, tuned_collective};

/// Words of `simulate`.
#[derive(Debug, clap::Args)]
// Made by clap, the usage is too long for a line.
#[command(
    override_usage = "dynamiccl simulate [OPTIONS] <--cluster C|--topo FILE> --nodes N --collective K --bytes B
   or: dynamiccl simulate [OPTIONS] --curriculum NAME|FILE"
)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl simulate --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1M
    dynamiccl simulate --cluster ./mine.toml --nodes 16 --collective allgather --bytes 64K --world 7
    dynamiccl simulate --cluster hgx_b200 --nodes 1 --collective allreduce --bytes 32M --nccl 2.28
    dynamiccl simulate --topo topo.xml --nodes 2 --collective allreduce --bytes 1M --graph graph.xml
    dynamiccl simulate --cluster aws_p5 --nodes 4 --collective reduce --bytes 8M --env NCCL_PROTO=LL
    dynamiccl simulate --curriculum stage2

NCCL's variables in the environment of this shell are not looked at: what counts is given by --env.

", exit_codes!()))]
pub struct SimulateArgs {
    /// On what.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// NCCL's graphs.
    #[command(flatten)]
    pub graphs: GraphsArgs,
    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    #[arg(required_unless_present = "curriculum")]
    pub nodes: Option<u32>,
    /// Collective: broadcast, reduce, allgather, reducescatter or allreduce
    #[arg(long, value_name = "K", value_parser = tuned_collective, required_unless_present = "curriculum")]
    pub collective: Option<Collective>,
    /// Size as nccl-tests counts it, for instance 64K or 1M
    #[arg(long, value_name = "B", required_unless_present = "curriculum")]
    pub bytes: Option<Bytes>,
    /// What there is to win over NCCL's own choices on the machines of a curriculum, tier by tier:
    /// smoke, stage1, stage2, stage3, full, short, paths, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE")]
    #[arg(conflicts_with_all = ["cluster", "topo", "graph", "nodes", "collective", "bytes", "ranks_per_node", "world", "sharp", "env"])]
    pub curriculum: Option<String>,
    /// Worlds that --curriculum draws
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<u32>(1..=1000))]
    // What a required flag conflicts with makes it not required, so both are needed.
    #[arg(requires = "curriculum", conflicts_with_all = ["cluster", "topo", "nodes", "collective", "bytes"])]
    pub worlds: u32,
    /// GPUs used per node [default: all of them]
    #[arg(long, value_name = "G", value_parser = whole::<u32>(1..))]
    pub ranks_per_node: Option<u32>,
    /// Draw the hidden constants of the world with this seed [default: the model's own constants]
    #[arg(long, value_name = "SEED", value_parser = whole::<u64>(..))]
    pub world: Option<u64>,
    /// Turn CollNet on: the switches can reduce in the network (SHARP)
    #[arg(long)]
    pub sharp: bool,
    /// NCCL release whose decision is reproduced: 2.28, 2.29 or 2.30
    #[arg(long, value_name = "RELEASE", default_value_t)]
    pub nccl: Version,
    /// Set one of NCCL's variables, for instance NCCL_ALGO=Ring; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,
    /// Lines of the table, fastest first
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = whole::<usize>(..))]
    pub top: usize,
    /// Whether a synthesised schedule can run.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}
