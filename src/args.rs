//! The words of the command line, typed but not yet given a meaning.
//!
//! Nothing here touches a file: a command turns its words into a plan, and fails there if it must.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use dynamiccl_env::nccl::Version;
use dynamiccl_spec::{Bytes, Collective};
use serde::Serialize;

/// The end of every long help.
macro_rules! exit_codes {
    () => {
        "\
EXIT CODES
    0    done
    1    ran, and the verdict is no
    2    error: usage, configuration, input or backend
    130  interrupted, after saving what could be saved"
    };
}

/// Learns NCCL's per-call knobs in a simulator and loads them into unmodified jobs
///
/// NCCL picks algorithm, protocol and channels of each collective call from a fixed cost model.
/// DynamICCL knows that model exactly, simulates what a call really costs on a cluster, and shows
/// where the two part. No command here needs a GPU.
#[derive(Debug, Parser)]
#[command(
    name = "dynamiccl",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_long_help = concat!("\
EXAMPLES
    What does each setting cost for a 1 MiB allreduce on two DGX A100?
        dynamiccl simulate --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1M

    The same as one JSON document:
        dynamiccl simulate --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1M --json

", exit_codes!())
)]
pub struct Args {
    /// Flags that every command has.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command has.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Print the result as one JSON document on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Seed of everything random: a number, or "random" to draw and print one
    #[arg(long, global = true, value_name = "N|random", default_value = "1")]
    pub seed: SeedArg,
    /// Print the result only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Show progress on stderr
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ProgressWhen::Auto)]
    pub progress: ProgressWhen,
}

/// When progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressWhen {
    /// A bar on a terminal, a plain line every few seconds elsewhere, nothing with -q or --json
    Auto,
    /// Also with -q and --json
    Always,
    /// Not at all
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// True and NCCL-predicted time of every knob setting of one call
    Simulate(SimulateArgs),
    /// Compare the simulator with measurements
    Validate(ValidateArgs),
    /// Fit a cluster to the nccl-tests logs of a machine
    Calibrate(CalibrateArgs),
    /// Hold an environment to every rule of the contract
    CheckEnv(CheckEnvArgs),
    /// Time the program itself: simulator steps and decisions per second
    #[command(after_long_help = exit_codes!())]
    Bench,
}

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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(required_unless_present = "curriculum")]
    pub nodes: Option<u32>,
    /// Collective: broadcast, reduce, allgather, reducescatter or allreduce
    #[arg(long, value_name = "K", value_parser = tuned_collective, required_unless_present = "curriculum")]
    pub collective: Option<Collective>,
    /// Size as nccl-tests counts it, for instance 64K or 1M
    #[arg(long, value_name = "B", required_unless_present = "curriculum")]
    pub bytes: Option<Bytes>,
    /// What there is to win over NCCL's own choices on the machines of a curriculum, tier by tier:
    /// smoke, stage1, stage2, stage3, full, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE")]
    #[arg(conflicts_with_all = ["cluster", "topo", "graph", "nodes", "collective", "bytes", "ranks_per_node", "world", "sharp", "env"])]
    pub curriculum: Option<String>,
    /// Worlds that --curriculum draws
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    #[arg(requires = "curriculum")]
    pub worlds: u32,
    /// GPUs used per node [default: all of them]
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,
    /// Draw the hidden constants of the world with this seed [default: the model's own constants]
    #[arg(long, value_name = "SEED")]
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
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub top: usize,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}

/// Words of `validate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl validate --sweeps measured/sweeps
    dynamiccl validate --tables measured/nccl-tests --constants blind --json
    dynamiccl validate --sweeps measured/sweeps --fail-above 1.15

", exit_codes!()))]
pub struct ValidateArgs {
    /// What to compare with.
    #[command(flatten)]
    pub data: MeasuredArgs,
    /// Exit with 1 if the overall figure is above this: of sweeps the decision fidelity, of tables
    /// the error of the model as it is
    #[arg(long, value_name = "X")]
    pub fail_above: Option<f64>,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}

/// Measurements to compare with: one of the two.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct MeasuredArgs {
    /// Folder of knob sweeps: every setting measured, so rankings can be compared
    #[arg(long, value_name = "DIR")]
    pub sweeps: Option<PathBuf>,
    /// Folder of nccl-tests tables: NCCL's own choice measured, so times can be compared
    #[arg(long, value_name = "DIR")]
    pub tables: Option<PathBuf>,
}

/// Words of `calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    all_reduce_perf -b 1K -e 1G -f 4 -g 8 > node.log
    dynamiccl calibrate --log node.log --cluster dgx_h100 --out mine.toml
    dynamiccl calibrate --log pair.log --cluster ./mine.toml --out mine.toml
    dynamiccl simulate --cluster ./mine.toml --nodes 1 --collective allreduce --bytes 1M

", exit_codes!()))]
pub struct CalibrateArgs {
    /// Output of nccl-tests, as text or as JSON (-J); may be repeated for logs of one communicator
    #[arg(long, value_name = "FILE", required = true)]
    pub log: Vec<PathBuf>,
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,
    /// GPUs used per node [default: from the log, else all of them]
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,
    /// Collective that was measured, where the log does not say it
    #[arg(long, value_name = "K", value_parser = tuned_collective)]
    pub collective: Option<Collective>,
    /// NCCL release that was measured: 2.28, 2.29 or 2.30 [default: from the log, else 2.30]
    #[arg(long, value_name = "RELEASE")]
    pub nccl: Option<Version>,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}

/// Words of `check-env`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl check-env trace --trace job.jsonl --cluster dgx_h100
    dynamiccl check-env sim --curriculum smoke --steps 20000
    dynamiccl check-env trace --trace job.jsonl --json

", exit_codes!()))]
pub struct CheckEnvArgs {
    /// Environment
    #[arg(value_name = "ENV", value_enum)]
    pub env: EnvKind,
    /// Curriculum of the simulated jobs: a name, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "smoke")]
    pub curriculum: String,
    /// Recording to replay: our own lines or NCCL inspector's [default: a small one that we bring along]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Cluster that the recording replays on [default: the one that it names]
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,
    /// Random legal steps to take
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub steps: u64,
}

/// An environment that can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvKind {
    /// Jobs in the simulator
    Sim,
    /// A recorded job
    Trace,
}

/// The machine: one of the two.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct MachineArgs {
    /// Cluster by name, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,
    /// Nodes like the one that NCCL dumped with NCCL_TOPO_DUMP_FILE
    #[arg(long, value_name = "FILE")]
    pub topo: Option<PathBuf>,
}

/// What NCCL's search found, where a dump says it better than the cluster.
#[derive(Debug, clap::Args)]
pub struct GraphsArgs {
    /// Graphs that NCCL dumped with NCCL_GRAPH_DUMP_FILE on this many nodes, instead of the cluster's
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
}

/// Constants of the performance model.
#[derive(Debug, clap::Args)]
pub struct ConstantsArgs {
    /// Constants of the model: "full", "blind" (those that never saw the live sweeps) or a file
    #[arg(long, value_name = "FILE|blind", default_value = "full")]
    pub constants: String,
}

/// A seed, or the wish for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedArg {
    /// This one.
    Fixed(u64),
    /// Any.
    Random,
}

impl FromStr for SeedArg {
    type Err = ParseIntError;

    fn from_str(s: &str) -> Result<Self, ParseIntError> {
        if s == "random" { Ok(SeedArg::Random) } else { s.parse().map(SeedArg::Fixed) }
    }
}

/// A collective that reaches a tuner; the others have nothing to choose.
fn tuned_collective(s: &str) -> Result<Collective, String> {
    let tuned = || Collective::TUNED.map(Collective::name).join(", ");
    match s.parse::<Collective>() {
        Ok(collective) if Collective::TUNED.contains(&collective) => Ok(collective),
        Ok(other) => {
            Err(format!("NCCL does not tune {other}, it has no setting to choose (tuned: {})", tuned()))
        }
        Err(unknown) => Err(unknown.to_string()),
    }
}

/// A variable and its value.
fn assignment(s: &str) -> Result<(String, String), String> {
    match s.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write it like NCCL_ALGO=Ring".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Args::command().debug_assert();
    }

    /// Fails unless the words after `prefix` in each such line of the text are a command of ours.
    fn assert_commands_parse(prefix: &str, text: &str) {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(prefix));
        let commands: Vec<_> = lines.map(|line| format!("dynamiccl {line}")).collect();
        assert!(!commands.is_empty(), "no line begins with {prefix:?}");
        for command in commands {
            if let Err(error) = Args::try_parse_from(command.split_whitespace()) {
                panic!("{command}\n{error}");
            }
        }
    }

    #[test]
    fn every_example_can_be_typed() {
        let mut command = Args::command();
        assert_commands_parse("dynamiccl ", &command.render_long_help().to_string());
        for name in ["simulate", "validate", "calibrate", "check-env"] {
            let help = command.find_subcommand_mut(name).expect(name).render_long_help();
            assert_commands_parse("dynamiccl ", &help.to_string());
        }
        assert_commands_parse("cargo run --release -- ", include_str!("../README.md"));
    }

    #[test]
    fn only_tuned_collectives_are_taken() {
        assert_eq!(tuned_collective("AllReduce"), Ok(Collective::AllReduce));
        let refused = tuned_collective("alltoall").unwrap_err();
        assert!(refused.starts_with("NCCL does not tune alltoall"), "{refused}");
        assert!(tuned_collective("allredcue").unwrap_err().contains("did you mean \"allreduce\""));
    }

    #[test]
    fn a_variable_has_a_name_and_a_value() {
        assert_eq!(assignment("NCCL_ALGO=Ring"), Ok(("NCCL_ALGO".to_owned(), "Ring".to_owned())));
        for bad in ["NCCL_ALGO", "=Ring", "NCCL_ALGO="] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }
}
