//! The words of `tune`.

use std::path::PathBuf;

use clap::ValueEnum;
use dynamiccl_spec::{Bytes, Collective};
use serde::{Deserialize, Serialize};

use super::numbers::{number, whole};
use super::shared::{ConstantsArgs, MachineArgs, tuned_collective};

/// Words of `tune`.
#[derive(Debug, clap::Args)]
// Made by clap, the usage is too long for a line.
#[command(override_usage = "dynamiccl tune [OPTIONS] --method M <--cluster C|--topo FILE> --nodes N")]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl tune --method grid --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 16M
    dynamiccl tune --method mraco --cluster dgx_a100 --nodes 1
    dynamiccl tune --method mraco --cluster dgx_a100 --nodes 1 --space own --out nccl_tuner.csv
    dynamiccl tune --method coordinate --cluster a40_8_pcie --nodes 4 --out nccl_tuner.csv
    dynamiccl tune --method tpe --cluster dgx_h100 --nodes 1 --budget 60 --out lookup.json
    dynamiccl tune --method tpe --cluster dgx_h100 --nodes 1 --budget 60 --out lookup.json --resume
    dynamiccl tune --joint --cluster aws_p4d --nodes 2 --collective reduce --bytes 64M --out t.json

Without --collective and --bytes, all five collectives from 1 KiB to 1 GiB in powers of 4 are tuned.

", exit_codes!()))]
pub struct TuneArgs {
    /// How to search [with --joint: mraco unless given]
    #[arg(
        long,
        value_name = "M",
        value_enum,
        required = false,
        required_unless_present = "joint",
        default_value_if("joint", "true", "mraco")
    )]
    pub method: Method,
    /// Search schedules of our own: sketch, synthesizer and chunks together with the executor's settings
    #[arg(long)]
    pub joint: bool,
    /// On what.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub nodes: u32,
    /// Collective: broadcast, reduce, allgather, reducescatter or allreduce [default: all]
    #[arg(long, value_name = "K", value_parser = tuned_collective)]
    pub collective: Option<Collective>,
    /// Size as nccl-tests counts it, for instance 64K or 1M [default: 1 KiB to 1 GiB in powers of 4]
    #[arg(long, value_name = "B")]
    pub bytes: Option<Bytes>,
    /// What is searched [default: tuccl for mraco, which was made for it; own for the others]
    #[arg(long, value_name = "SPACE", value_enum)]
    pub space: Option<SpaceKind>,
    /// Most trials for each call [default: until the method ends; 100 for those that never do]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub budget: Option<u32>,
    /// Spread of one measured call's ln(time); a trial is the mean of 27 calls
    #[arg(long, value_name = "X", default_value_t = 0.05, value_parser = number::<f64>)]
    pub noise: f64,
    /// GPUs used per node [default: all of them]
    #[arg(long, value_name = "G", value_parser = whole::<u32>(1..))]
    pub ranks_per_node: Option<u32>,
    /// Draw the hidden constants of the world with this seed [default: the model's own constants]
    #[arg(long, value_name = "SEED", value_parser = whole::<u64>(..))]
    pub world: Option<u64>,
    /// Write what was found: a table for NVIDIA's example tuner (.csv) or a lookup file (.json)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Go on with the lookup file of --out: what it has stays
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write the true time of every setting of the one call, as JSON
    #[arg(long, value_name = "FILE", requires_all = ["collective", "bytes"])]
    pub surface: Option<PathBuf>,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}

/// How settings are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Every setting once
    Grid,
    /// Settings in random order
    Random,
    /// Brackets over Parzen densities, as TuCCL does it
    Mraco,
    /// Plain Parzen densities
    Tpe,
    /// One knob after the other, as AutoCCL does it
    Coordinate,
    /// UCB over a few settings
    Bandit,
    /// ε-greedy over the same settings
    Epsilon,
    /// No trial at all: the setting that is best on average over 24 worlds of such machines
    Bayes,
}

impl TuneArgs {
    /// What is searched.
    pub fn searched(&self) -> SpaceKind {
        let usual = if self.method == Method::Mraco { SpaceKind::Tuccl } else { SpaceKind::Own };
        self.space.unwrap_or(usual)
    }
}

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpaceKind {
    /// The knobs that a tuner plugin has: algorithm and protocol, channels, chunk
    Own,
    /// TuCCL's 3,600 settings of MSCCL's ring: protocol, channels, threads, buffer
    Tuccl,
}
