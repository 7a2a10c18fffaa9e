//! The words of `synth`.

use std::path::PathBuf;

use clap::ValueEnum;
use dynamiccl_spec::{Bytes, Collective, Protocol};
use dynamiccl_synth::{Assume, Mode, Synthesizer};

use super::numbers::{above_zero, whole};
use super::shared::{MachineArgs, tuned_collective};

/// Words of `synth`.
#[derive(Debug, clap::Args)]
// Made by clap, the usage is too long for a line.
#[command(
    override_usage = "dynamiccl synth [OPTIONS] <--cluster C|--topo FILE> --nodes N --collective K --bytes B
       dynamiccl synth --verify FILE"
)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl synth --cluster dgx_a100 --nodes 2 --collective allgather --bytes 1G
    dynamiccl synth --cluster aws_p4d --nodes 2 --collective allreduce --bytes 1M --picture ar.svg
    dynamiccl synth --cluster aws_p4d --nodes 2 --collective reduce --bytes 1G --sketch full
    dynamiccl synth --cluster aws_p4d --nodes 2 --collective reduce --bytes 1G --sketch-out s.toml
    dynamiccl synth --cluster aws_p4d --nodes 2 --collective reduce --bytes 1G --sketch-file s.toml
    dynamiccl synth --verify ar.xml

What is not given is tried, and the fastest is taken: sketches, synthesizers, chunks, backends.

", exit_codes!()))]
pub struct SynthArgs {
    /// On what.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Take the PCIe tree of a running node: a folder such as /sys, or a recorded text
    #[arg(long, value_name = "PATH", requires = "cluster")]
    pub sysfs: Option<PathBuf>,
    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..), required_unless_present = "verify")]
    pub nodes: Option<u32>,
    /// GPUs used per node [default: all of them]
    #[arg(long, value_name = "G", value_parser = whole::<u32>(1..))]
    pub ranks_per_node: Option<u32>,
    /// Collective: broadcast, reduce, allgather, reducescatter or allreduce
    #[arg(long, value_name = "K", value_parser = tuned_collective, required_unless_present = "verify")]
    pub collective: Option<Collective>,
    /// Size as nccl-tests counts it, for instance 64K or 1G
    #[arg(long, value_name = "B", required_unless_present = "verify")]
    pub bytes: Option<Bytes>,
    /// Which connections between nodes may be used
    #[arg(long, value_name = "SKETCH", value_enum, default_value_t = SketchWord::Auto)]
    pub sketch: SketchWord,
    /// Use the connections of this file instead
    #[arg(long, value_name = "FILE", conflicts_with = "sketch")]
    pub sketch_file: Option<PathBuf>,
    /// Synthesizer: greedy, tree, ring or direct [default: the fastest]
    #[arg(long, value_name = "S")]
    pub synthesizer: Option<Synthesizer>,
    /// What the synthesizer takes to be shared: conn, gpu or nic [default: the fastest]
    #[arg(long, value_name = "A")]
    pub assume: Option<Assume>,
    /// Chunks of each rank [default: the fastest of 1 and 4]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=64))]
    pub chunks: Option<u32>,
    /// Protocol of the executor: ll, ll128 or simple; any of these four makes the others MSCCL's own
    #[arg(long, value_name = "P")]
    pub protocol: Option<Protocol>,
    /// Channels of the executor
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=32))]
    pub channels: Option<u32>,
    /// Threads of a block
    #[arg(long, value_name = "N", value_parser = whole::<u32>(32..=1024))]
    pub threads: Option<u32>,
    /// Buffer of a connection, for instance 4M
    #[arg(long, value_name = "B")]
    pub buffer: Option<Bytes>,
    /// GB/s that one channel gets out of a NIC [default: as usual for the network]
    #[arg(long, value_name = "X", value_parser = above_zero)]
    pub network_channel: Option<f64>,
    /// Write the schedule as an MSCCL file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the schedule over links and time, as SVG
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Write the sketch as a file to edit
    #[arg(long, value_name = "FILE")]
    pub sketch_out: Option<PathBuf>,
    /// Prove an MSCCL file instead: exit code 0, or 1 with the first rule that it breaks
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["cluster", "topo", "nodes", "collective", "bytes", "sketch_file", "out", "picture", "sketch_out"]
    )]
    pub verify: Option<PathBuf>,
}

/// A sketch, or the wish for the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SketchWord {
    /// The fastest of full, pair and relay
    Auto,
    /// Every rank with every other
    Full,
    /// All ranks on NICs of one group with each other
    All,
    /// The i-th rank of a NIC with the i-th of the others in its group
    Pair,
    /// One rank of a NIC sends, another receives
    Relay,
}

impl SketchWord {
    /// The mode; none where the best is wanted.
    pub fn mode(self) -> Option<Mode> {
        match self {
            SketchWord::Auto => None,
            SketchWord::Full => Some(Mode::Full),
            SketchWord::All => Some(Mode::All),
            SketchWord::Pair => Some(Mode::Pair),
            SketchWord::Relay => Some(Mode::Relay),
        }
    }
}
