//! The words of `rails`.

use std::path::PathBuf;

use dynamiccl_spec::Micros;

use super::numbers::{number, whole};

/// Words of `rails`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl rails --delay 100ms
    dynamiccl rails --technology piezo --pp 8 --micro-batches 8 --jitter 0.05 --surprise 0.1
    dynamiccl rails --delay 100ms --pp 4 --micro-batches 4 --gflops 40000 --html rails.html
    dynamiccl rails --table3
    dynamiccl rails --bom --servers 512

", exit_codes!()))]
pub struct RailsArgs {
    /// Time until new circuits carry light, for instance 15ms; 0 for none [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = delay, conflicts_with = "technology")]
    pub delay: Option<f64>,
    /// The same by the kind of switch: plzt, sip, rotornet, 3d_mems, piezo, liquid_crystal, robotic
    #[arg(long, value_name = "NAME")]
    pub technology: Option<String>,
    /// Model
    #[arg(long, value_name = "NAME", default_value = "llama3_8b")]
    pub model: String,
    /// Pipeline stages
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u32>(1..=64))]
    pub pp: u32,
    /// Ranks that share the parameters of a stage
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u32>(1..=1024))]
    pub fsdp: u32,
    /// Micro-batches of an iteration [default: as many as stages]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1024))]
    pub micro_batches: Option<u32>,
    /// 10⁹ floating-point operations that a GPU sustains in a second [default: fitted to the paper]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub gflops: Option<u32>,
    /// Standard deviation of a piece of compute, as a share of it
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = number::<f64>)]
    pub jitter: f64,
    /// Chance that a stage makes a call in an iteration that the profile does not hold
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = number::<f64>)]
    pub surprise: f64,
    /// Iterations of each repetition
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u32>(1..=1000))]
    pub iterations: u32,
    /// Independent repetitions where windows vary; ± is over them
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u32>(1..=100))]
    pub repetitions: u32,
    /// Policy that is judged beside the others: a file of one that was trained on photonic rails, "learned" for the one
    /// that comes with the program, or "none"
    #[arg(long, value_name = "FILE|learned|none", default_value = "learned")]
    pub policy: PathBuf,
    /// Write everything as one page with plots to this file, readable without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show instead how large a cluster each kind of switch allows
    #[arg(long, conflicts_with_all = ["bom", "delay", "technology", "policy", "html"])]
    pub table3: bool,
    /// Show instead what the network costs and draws beside electrical rails
    #[arg(long, conflicts_with_all = ["delay", "technology", "policy", "html"])]
    pub bom: bool,
    /// Servers of eight GPUs for --bom
    #[arg(long, value_name = "N", default_value_t = 512, requires = "bom")]
    #[arg(value_parser = whole::<u64>(1..=1_000_000))]
    pub servers: u64,
}

/// A time in µs that may be none.
fn delay(word: &str) -> Result<f64, String> {
    let number = word.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = &word[number.len()..];
    let is_unit = unit.is_empty() || format!("1{unit}").parse::<Micros>().is_ok();
    if is_unit && number.trim().parse() == Ok(0.0) {
        return Ok(0.0);
    }
    word.parse::<Micros>().map(|micros| micros.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_may_be_none_but_of_a_time() {
        for (word, micros) in [("0", 0.0), ("0ms", 0.0), ("0 s", 0.0), ("0.0µs", 0.0), ("15ms", 15e3)] {
            assert_eq!(delay(word), Ok(micros), "{word}");
        }
        for bad in ["0bananas", "0m", "15", "ms", "-1ms", ""] {
            assert!(delay(bad).unwrap_err().contains("is not a time"), "{bad}");
        }
    }
}
