//! The words of `live`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use dynamiccl_env::measure::Clock;
use dynamiccl_spec::words::UnknownWord;
use dynamiccl_spec::{Bytes, ChannelChoice, ChunkChoice, Collective, ThreadChoice};

use super::live_train::LiveTrainArgs;
use super::numbers::whole;
use super::shared::{assignment, tuned_collective};

/// Words of `live`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl live sweep --ranks 2 --share-gpu --clock slowest --out loopback_2ranks.csv
    dynamiccl live sweep --ranks 8 --out node.csv --collectives allreduce --sizes 1K..1G
    dynamiccl live train --sweep loopback_4ranks.csv --out mine.safetensors
    dynamiccl live train --ranks 2 --share-gpu --out mine.safetensors

", exit_codes!()))]
pub struct LiveArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LiveCommand,
}

/// What can be done with real NCCL.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Time every setting of every call on real ranks
    Sweep(SweepArgs),
    /// Judge a policy against NCCL's own choice on real ranks
    Eval(LiveEvalArgs),
    /// Fit a policy to recorded sweeps, which needs no GPU, or to real ranks
    Train(LiveTrainArgs),
    /// Take away what a run has left behind, should it be killed; the other commands start this beside themselves
    #[command(hide = true)]
    Guard,
    /// Be one rank; the other commands start this beside themselves
    #[command(hide = true)]
    Worker,
}

/// Words of `live sweep`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl live sweep --ranks 2 --share-gpu --clock slowest --out loopback_2ranks.csv
    dynamiccl live sweep --ranks 4 --share-gpu --clock slowest --link 10gbit --out 10gbit_4ranks.csv
    dynamiccl live sweep --ranks 2 --share-gpu --collectives allreduce --sizes 1K,1M --out short.csv
    dynamiccl live sweep --ranks 8 --threads 128,256,512 --beside 0.5 --out node.csv
    mpirun -np 16 --bind-to none -x DYNAMICCL_LIVE_SECRET dynamiccl live sweep --rendezvous node1:29477 --out n.csv

A file that is there already is gone on with: calls that it lacks, then those with too few rounds.

", exit_codes!()))]
pub struct SweepArgs {
    /// The ranks.
    #[command(flatten)]
    pub job: JobArgs,
    /// Threads of NCCL's kernels.
    #[command(flatten)]
    pub of_kernels: ThreadsArgs,
    /// The calls.
    #[command(flatten)]
    pub calls: CallsArgs,
    /// CSV file to write, or to go on with
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Channels to try
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = channels, default_value = "1,2,4,8,16")]
    pub channels: Vec<ChannelChoice>,
    /// Chunk sizes to try beside NCCL's own: quarter, half, double, quadruple; NCCL must ask tuners for them (v6)
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = chunks)]
    pub chunks: Vec<ChunkChoice>,
    /// Let compute run beside the calls that fills this share of every GPU, for instance 0.5, and say how much it slows
    /// down
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub beside: Option<f64>,
    /// Rounds over all settings of a call, at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,
    /// Rounds in all, where it is unsure how much faster the best is than NCCL's own
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = whole::<u32>(1..=1000))]
    pub most_rounds: u32,
    /// How sure the best is to be compared with NCCL's own: half the 95 % interval, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = bound)]
    pub bound: f64,
    /// Seconds after which no call is measured again
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = whole::<u64>(..))]
    pub budget: u64,
    /// Whose clock counts: first (rank 0's, as in published sweeps), slowest (until all ranks are done)
    #[arg(long, value_name = "WHOSE", value_enum, default_value = "first")]
    pub clock: ClockArg,
}

/// Words of `live eval`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl live eval --ranks 2 --share-gpu
    dynamiccl live eval --ranks 4 --share-gpu --policy mine.safetensors --against nccl,oracle
    dynamiccl live eval --ranks 8 --policy mine.safetensors --launch-threads 128
    dynamiccl live eval --ranks 8 --collectives allreduce --sizes 1K..1G --json

The policy decides within the plugin, from NCCL's own table, as it would in a job. It ends with 1 where a cell is
significantly below 0.95, or all of them below 1.

", exit_codes!()))]
pub struct LiveEvalArgs {
    /// The ranks.
    #[command(flatten)]
    pub job: JobArgs,
    /// Threads of NCCL's kernels.
    #[command(flatten)]
    pub of_kernels: ThreadsArgs,
    /// The calls.
    #[command(flatten)]
    pub calls: CallsArgs,
    /// Policy: a file, or "shipped"
    #[arg(long, value_name = "FILE", default_value = "shipped")]
    pub policy: String,
    /// Deployment file, as the plugin reads it
    #[arg(long, value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// Start the policy's ranks with this many threads per block, and NCCL's own without: both by turns, as NCCL reads
    /// it once in the life of a process
    #[arg(long, value_name = "N", value_parser = threads, conflicts_with_all = ["threads", "sweep"])]
    pub launch_threads: Option<u32>,
    /// What it is compared with: nccl (always), oracle (the best of all settings, tried just before)
    #[arg(long, value_name = "WHO,…", value_delimiter = ',', value_enum, default_value = "nccl")]
    pub against: Vec<LiveRival>,
    /// Let oracle be the best of this sweep
    #[arg(long, value_name = "FILE")]
    pub sweep: Option<PathBuf>,
    /// Rounds of every call
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(1..=10_000))]
    pub rounds: u32,
    /// Rounds in all, where it is still unsure who is faster
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = whole::<u32>(1..=10_000))]
    pub most_rounds: u32,
    /// How sure every comparison is to be: half the 95 % interval, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = bound)]
    pub bound: f64,
    /// Whose clock counts: first (rank 0's, as in published sweeps), slowest (until all ranks are done)
    #[arg(long, value_name = "WHOSE", value_enum, default_value = "slowest")]
    pub clock: ClockArg,
}

/// Whose clock counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// Rank 0's
    First,
    /// That of the rank that is done last
    Slowest,
}

impl From<ClockArg> for Clock {
    fn from(clock: ClockArg) -> Self {
        match clock {
            ClockArg::First => Clock::First,
            ClockArg::Slowest => Clock::Slowest,
        }
    }
}

/// Who a policy is compared with on real ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LiveRival {
    /// NCCL's own choice
    Nccl,
    /// The best of all settings
    Oracle,
}

/// The ranks, and what they run on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Ranks")]
pub struct JobArgs {
    /// Ranks to start on this machine [default: those that mpirun, torchrun or srun has started]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1024))]
    pub ranks: Option<u32>,
    /// Where rank 0 can be reached by all, under a launcher [default: what the launcher says]
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["ranks", "link"])]
    pub rendezvous: Option<String>,
    /// Let ranks share a GPU, each as a host of its own with sockets between them
    #[arg(long)]
    pub share_gpu: bool,
    /// Give every rank a link of this rate, for instance 10gbit; needs root, ip and tc, and --share-gpu
    #[arg(long, value_name = "RATE", requires = "share_gpu")]
    pub link: Option<String>,
    /// `ip` of iproute2 [default: by the search path]
    #[arg(long, value_name = "FILE", requires = "link")]
    pub ip: Option<PathBuf>,
    /// `tc` of iproute2 [default: by the search path]
    #[arg(long, value_name = "FILE", requires = "link")]
    pub tc: Option<PathBuf>,
    /// NCCL's library [default: libnccl.so.2, as the dynamic linker finds it]
    #[arg(long, value_name = "FILE")]
    pub nccl: Option<PathBuf>,
    /// The plugin, where it is not in its usual places
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Set a variable of all ranks; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,
    /// Keep the ranks' logs in this folder [default: they are gone afterwards]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Seconds that ranks wait for each other to come
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = whole::<u64>(1..=3600))]
    pub wait: u64,
    /// Seconds after which a rank that finishes nothing counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = whole::<u64>(1..=600))]
    pub timeout: u64,
}

/// Threads of NCCL's kernels.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Ranks")]
pub struct ThreadsArgs {
    /// Threads per block (NCCL_NTHREADS); a sweep may have several, and starts its ranks anew for each [default: NCCL's
    /// own]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<u32>,
}

/// The calls.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Calls")]
pub struct CallsArgs {
    /// Collectives
    #[arg(long, value_name = "K,…", value_delimiter = ',', value_parser = tuned_collective)]
    #[arg(default_value = "allreduce,allgather,reducescatter,broadcast,reduce")]
    pub collectives: Vec<Collective>,
    /// Sizes as nccl-tests counts them: a list, or FROM..TO in powers of 4
    #[arg(long, value_name = "B,…|B..B", value_parser = sizes, default_value = "1K..16M")]
    pub sizes: Sizes,
}

/// Sizes of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

/// Sizes grow by this.
const FACTOR: u64 = 4;

fn sizes(s: &str) -> Result<Sizes, String> {
    let one = |word: &str| word.trim().parse::<Bytes>().map(|bytes| bytes.0).map_err(|bad| bad.to_string());
    let sizes = match s.split_once("..") {
        None => s.split(',').map(one).collect::<Result<Vec<_>, _>>()?,
        Some((from, to)) => {
            let (from, to) = (one(from)?, one(to)?);
            let next = |bytes: &u64| bytes.checked_mul(FACTOR).filter(|&bytes| bytes <= to);
            std::iter::successors(Some(from).filter(|&from| from <= to && from > 0), next).collect()
        }
    };
    match sizes.iter().find(|&&bytes| bytes < SMALLEST || bytes % FLOAT != 0) {
        Some(bad) => {
            Err(format!("{bad} bytes: ranks send floats of {FLOAT} bytes, and at least {SMALLEST} bytes"))
        }
        None if sizes.is_empty() => Err("no size: write it like 1K..16M, the smaller first".to_owned()),
        None => Ok(Sizes(sizes)),
    }
}

/// Less is no call that anybody tunes.
const SMALLEST: u64 = 256;
/// Bytes of what ranks send.
const FLOAT: u64 = 4;

fn threads(s: &str) -> Result<u32, String> {
    let known = || ThreadChoice::VALUES[1..].iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let choice = s.trim().parse().ok().and_then(ThreadChoice::of).and_then(ThreadChoice::requested);
    choice.ok_or_else(|| format!("\"{s}\" can not be asked for ({})", known()))
}

fn chunks(s: &str) -> Result<ChunkChoice, String> {
    s.trim().parse().map_err(|unknown: UnknownWord| unknown.to_string())
}

fn bound(s: &str) -> Result<f64, String> {
    let percent = s.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "a bound is a number of per cent from 0 to 100, like 2".to_owned())
}

fn share(s: &str) -> Result<f64, String> {
    let share: Option<f64> = s.trim().parse().ok();
    share
        .filter(|share| *share >= 0.001 && *share <= 1.0)
        .ok_or_else(|| "write it like 0.5: above 0, at most 1".to_owned())
}

fn channels(s: &str) -> Result<ChannelChoice, String> {
    let known = || ChannelChoice::VALUES.map(|n| n.to_string()).join(", ");
    let choice = s.trim().parse().ok().and_then(ChannelChoice::of);
    choice.ok_or_else(|| format!("\"{s}\" can not be asked for (0 for NCCL's own: {})", known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_lists_or_powers() {
        assert_eq!(sizes("1K..70K"), Ok(Sizes(vec![1024, 4096, 16_384, 65_536])));
        assert_eq!(sizes("1K,1M"), Ok(Sizes(vec![1024, 1 << 20])));
        for bad in ["1M..1K", "0..1M", "16", "1K,1026", "x", "1K,,2K", ""] {
            assert!(sizes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bound_is_a_share_of_hundred() {
        assert_eq!(["0", "2.5", "100"].map(bound), [Ok(0.0), Ok(2.5), Ok(100.0)]);
        assert!(["nan", "-1", "inf", "101", "x"].iter().all(|bad| bound(bad).is_err()));
    }

    #[test]
    fn only_threads_chunks_and_shares_that_can_be_asked_for_are_taken() {
        assert_eq!((threads("128"), chunks("Half"), share("0.5")), (Ok(128), Ok(ChunkChoice::Half), Ok(0.5)));
        assert!(threads("96").unwrap_err().contains("64, 128, 256, 512"));
        assert!(chunks("hlaf").unwrap_err().contains("did you mean \"half\""));
        assert!(["0", "1.1", "half", "nan"].iter().all(|bad| share(bad).is_err()));
    }

    #[test]
    fn only_channels_that_can_be_asked_for_are_taken() {
        assert_eq!(channels("12"), Ok(ChannelChoice::of(12).unwrap()));
        assert!(channels("3").unwrap_err().contains("24, 32, 64"));
    }
}
