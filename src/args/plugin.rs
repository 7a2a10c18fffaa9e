//! The words of `plugin`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Subcommand;
use dynamiccl_env::cluster::RANKS_MAX;

use super::numbers::whole;

/// Words of `plugin`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl plugin path
    dynamiccl plugin install --to /opt/dynamiccl/lib
    dynamiccl plugin doctor
    dynamiccl plugin doctor --rendezvous node1:29477 --timeout 120

", exit_codes!()))]
pub struct PluginArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// What can be done with the library that NCCL loads.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Say where the library is, and how to let NCCL load it
    Path(LibraryArgs),
    /// Copy the library to where jobs find it
    Install(InstallArgs),
    /// Check what a job would do: on one rank, or on all under its launcher
    Doctor(DoctorArgs),
    /// Open a library as NCCL would and print what it says; `doctor` runs this beside itself
    #[command(hide = true)]
    Probe(ProbeArgs),
}

/// Words of `plugin path`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    eval \"$(dynamiccl plugin path)\"

", exit_codes!()))]
pub struct LibraryArgs {
    /// The library, where it is not in its usual places
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}

/// Words of `plugin install`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl plugin install --to /opt/dynamiccl/lib

", exit_codes!()))]
pub struct InstallArgs {
    /// Folder that gets it, made where it is not there; all nodes of a job must see it
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// The library, where it is not in its usual places
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}

/// Words of `plugin doctor`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    One rank, with the variables of this shell:
        dynamiccl plugin doctor
    All ranks of a job, each with the variables that its launcher gives it:
        torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node1:29400 --no-python dynamiccl plugin doctor
        mpirun -np 16 -x NCCL_TUNER_PLUGIN -x DYNAMICCL_CONTEXT dynamiccl plugin doctor --rendezvous node1:29477
        srun --ntasks 16 dynamiccl plugin doctor

Rank 0 prints the verdict. Every rank ends with 0 where all would agree, with 1 where they would not.

", exit_codes!()))]
pub struct DoctorArgs {
    /// The library [default: what NCCL_TUNER_PLUGIN names, or the one in its usual places]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// NCCL's library, to know its release [default: libnccl.so.2, as the dynamic linker finds it]
    #[arg(long, value_name = "FILE")]
    pub nccl: Option<PathBuf>,
    /// This rank, under a launcher that does not say
    #[arg(long, value_name = "N", value_parser = whole::<u32>(..), requires = "ranks")]
    pub rank: Option<u32>,
    /// All ranks, under a launcher that does not say; 1: look at this one only
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroU32>(1..=u64::from(RANKS_MAX)))]
    pub ranks: Option<NonZeroU32>,
    /// Where rank 0 can be reached by all [default: what the launcher says]
    #[arg(long, value_name = "HOST:PORT")]
    pub rendezvous: Option<String>,
    /// How long ranks wait for each other
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = whole::<u64>(1..=3600))]
    pub timeout: u64,
}

/// Words of `plugin probe`.
#[derive(Debug, clap::Args)]
pub struct ProbeArgs {
    /// Libraries, as NCCL would name them to the dynamic linker; the first that opens is asked
    #[arg(value_name = "LIBRARY", required = true)]
    pub names: Vec<PathBuf>,
    /// They are NCCL's
    #[arg(long)]
    pub nccl: bool,
}
