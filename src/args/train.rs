//! The words of `train`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use dynamiccl_agent::learn::Device;

use super::numbers::whole;

// The judgement at the end where nobody says otherwise.
const AGAINST: &str = "nccl,oracle,bayes";
const WORLDS: u32 = 8;
const SEEDS: u32 = 3;

/// Words of `train`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dynamiccl train [OPTIONS] <--curriculum NAME|FILE|--resume DIR|latest>")]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl train --curriculum smoke
    dynamiccl train --curriculum stage1 --seed 2 --out runs --json
    dynamiccl train --curriculum full --set loss.entropy=[0.1,0.01] --set optimiser.epochs=3
    dynamiccl train --curriculum stage2 --without lstm,experts --steps 500000
    dynamiccl train --curriculum wan --seed 2
    dynamiccl train --resume latest
    dynamiccl train --resume checkpoints/full__s1__20261115T103310Z --steps 3000000 --override

A run is a folder of --out, explained in checkpoints/README.md. What it writes is explained in
docs/metrics.md; watch it with: tensorboard --logdir checkpoints

", exit_codes!()))]
pub struct TrainArgs {
    /// What is learned: a curriculum by name, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "resume")]
    pub curriculum: Option<String>,
    /// Folder in which the folder of the run is made
    #[arg(long, value_name = "DIR", default_value = "checkpoints")]
    pub out: PathBuf,
    /// Go on with this run, or with the one of --out that was begun last
    #[arg(long, value_name = "DIR|latest")]
    pub resume: Option<PathBuf>,
    /// Go on even though settings are others than the run's
    #[arg(long = "override", requires = "resume")]
    pub overrides: bool,
    /// End after this many steps [default: when the curriculum is through]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    pub steps: Option<u64>,
    /// Settings, as config.toml of a run has them in its table config; what is not there is as usual
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, for instance loss.entropy=[0.1,0.01]; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Do without, to see what it is worth, separated by commas: lstm, anchor, experts, feedback, curriculum,
    /// cost_table, or features of docs/state.md by name
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Constants of the model that worlds are drawn from: "full", "blind" (those that never saw the live sweeps) or a
    /// file [default: full]
    #[arg(long, value_name = "FILE|blind")]
    pub constants: Option<String>,
    /// Where gradients are worked out: flex, or ndarray, libtorch, cuda where they are built in [default: flex]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Device>,
    /// Threads to work on; they change nothing but the time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    pub threads: Option<u16>,
    /// Save a checkpoint every so many steps (50000) or seconds (60s)
    #[arg(long, value_name = "STEPS|SECONDS", default_value = "60s")]
    pub checkpoint_every: Every,
    /// Tuners beside which a policy for NCCL's knobs is judged at the end, as for eval
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = AGAINST)]
    pub against: Vec<String>,
    /// Clusters of that judgement, separated by commas, as for eval [default: those of the
    /// curriculum, and those that no curriculum contains]
    #[arg(long, value_name = "NAMES|FILES", value_delimiter = ',')]
    pub eval_clusters: Vec<String>,
    /// Worlds of each seed of that judgement; traces or repetitions where it is not about NCCL's knobs
    #[arg(long, value_name = "N", default_value_t = WORLDS, value_parser = whole::<u32>(1..=1000))]
    pub eval_worlds: u32,
    /// Seeds of that judgement
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = whole::<u32>(1..=100))]
    pub eval_seeds: u32,
}

impl TrainArgs {
    /// Words about the judgement at the end, which no run keeps: those that are not as usual.
    pub fn of_judgement(&self) -> Vec<String> {
        let words = [
            ("--against", self.against.join(","), AGAINST.to_owned()),
            ("--eval-clusters", self.eval_clusters.join(","), String::new()),
            ("--eval-worlds", self.eval_worlds.to_string(), WORLDS.to_string()),
            ("--eval-seeds", self.eval_seeds.to_string(), SEEDS.to_string()),
        ];
        let unusual = words.into_iter().filter(|(_, given, usual)| given != usual);
        unusual.flat_map(|(flag, given, _)| [flag.to_owned(), given]).collect()
    }
}

/// How often something is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Every {
    /// After so many steps.
    Steps(u64),
    /// After so long.
    Time(Duration),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let every = match word.strip_suffix('s') {
            Some(seconds) => {
                seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()).map(Every::Time)
            }
            None => word.parse().ok().filter(|&steps| steps > 0).map(Every::Steps),
        };
        every.ok_or_else(|| "write it like 50000 (steps) or 60s (seconds)".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_seconds_are_told_apart() {
        assert_eq!("50000".parse(), Ok(Every::Steps(50_000)));
        assert_eq!("1.5s".parse(), Ok(Every::Time(Duration::from_millis(1500))));
        for bad in ["", "s", "0", "-1s", "5m", "1e99s"] {
            assert!(bad.parse::<Every>().is_err(), "{bad}");
        }
    }
}
