//! The words of the command line, typed but not yet given a meaning.
//!
//! Nothing here touches a file: a command turns its words into a plan, and fails there if it must.

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

mod calibrate;
mod check_env;
mod decide;
mod eval;
mod export;
mod inspect;
mod live;
mod live_train;
mod numbers;
mod plugin;
mod rails;
mod shared;
mod simulate;
mod synth;
mod train;
mod tune;
mod validate;
mod wan;

use std::ffi::OsString;
use std::str::FromStr;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use calibrate::CalibrateArgs;
pub use check_env::{CheckEnvArgs, EnvKind};
pub use decide::DecideArgs;
pub use eval::{CELLS, EvalArgs, Proof};
pub use export::{ExportArgs, ExportFormat};
pub use inspect::InspectArgs;
pub use live::{CallsArgs, JobArgs, LiveArgs, LiveCommand, LiveEvalArgs, LiveRival, SweepArgs};
pub use live_train::LiveTrainArgs;
pub use plugin::{DoctorArgs, InstallArgs, LibraryArgs, PluginArgs, PluginCommand, ProbeArgs};
pub use rails::RailsArgs;
pub use shared::MachineArgs;
pub use simulate::SimulateArgs;
pub use synth::SynthArgs;
pub use train::{Every, TrainArgs};
pub use tune::{Method, SpaceKind, TuneArgs};
pub use validate::ValidateArgs;
pub use wan::WanArgs;

/// Learns NCCL's per-call knobs in a simulator and loads them into unmodified jobs
///
/// NCCL picks algorithm, protocol and channels of each collective call from a fixed cost model.
/// DynamICCL knows that model exactly, simulates what a call really costs on a cluster, and shows
/// where the two part. Only `live` and `check-env live` need a GPU; `live train --sweep` does not.
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
    /// Seed of everything random: a number, or "random" to draw and print one [default: 1]
    // No default of clap's: a run that is resumed has its own.
    #[arg(long, global = true, value_name = "N|random")]
    pub seed: Option<SeedArg>,
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
    /// Search the best settings of calls by trying them
    Tune(TuneArgs),
    /// Make a schedule for a machine's links, prove it and time it; or prove an MSCCL file
    Synth(SynthArgs),
    /// What a policy chooses on one machine over all sizes, and NCCL's choice beside it
    Decide(DecideArgs),
    /// Hold an environment to every rule of the contract
    CheckEnv(CheckEnvArgs),
    /// Learn a policy in the simulator
    Train(TrainArgs),
    /// Judge tuners against NCCL's own choice and the best there is
    Eval(EvalArgs),
    /// Say what a file is, and whether this build can run it
    Inspect(InspectArgs),
    /// Write a policy as a file to deploy, or as a table for NVIDIA's example tuner
    Export(ExportArgs),
    /// Collectives across datacentres: rings and routes that change, and who decides when
    Wan(WanArgs),
    /// The library that NCCL loads: where it is, and whether a job with it would run well
    Plugin(PluginArgs),
    /// Photonic rails: what changing circuits costs a job, and what the network behind it costs
    Rails(RailsArgs),
    /// The same on real NCCL: settings timed, policies judged on real ranks and fitted to what was measured
    Live(LiveArgs),
    /// Time the program itself: simulator steps and decisions per second
    #[command(after_long_help = exit_codes!())]
    Bench,
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
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if s == "random" {
            return Ok(SeedArg::Random);
        }
        numbers::whole(..)(s).map(SeedArg::Fixed).map_err(|remedy| format!("{remedy}, or \"random\""))
    }
}

impl Args {
    /// What the words of this process mean, or clap's answer to them.
    pub fn read() -> Result<Self, clap::Error> {
        Args::of(std::env::args_os())
    }

    fn of(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut command = numbers::with_negative(Args::command());
        let mut matches = command.try_get_matches_from_mut(words)?;
        Args::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
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
        // `bench` takes no words of its own, and clap's own `help` is not ours.
        let ours = |command: &&mut clap::Command| !["bench", "help"].contains(&command.get_name());
        for subcommand in command.get_subcommands_mut().filter(ours) {
            assert_commands_parse("dynamiccl ", &subcommand.render_long_help().to_string());
        }
        assert_commands_parse("cargo run --release -- ", include_str!("../../README.md"));
    }
}
