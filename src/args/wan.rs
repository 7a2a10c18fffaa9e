//! The words of `wan`.

use std::path::PathBuf;

use dynamiccl_env::wan::{Forwarding, Method, Network};
use dynamiccl_spec::{Collective, Micros};

use super::numbers::{above_zero, number, whole};

/// Words of `wan`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl wan --gpus 8 --mb 32 --delay 1ms --collectives 100000
    dynamiccl wan --gpus 16 --grid --html wan.html
    dynamiccl wan --gpus 3,5,4 --collective allreduce --rho 0.9
    dynamiccl wan --policy learned --rho 0.95 --rebuild-ms 100 --reroute-ms 5

", exit_codes!()))]
pub struct WanArgs {
    /// GPUs of all datacentres, or of each, separated by commas
    #[arg(long, value_name = "N|N,N,…", value_delimiter = ',', default_value = "8")]
    #[arg(value_parser = whole::<usize>(1..=Network::MOST_GPUS as u64))]
    pub gpus: Vec<usize>,
    /// Datacentres that share the GPUs evenly
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = whole::<usize>(2..=Network::MOST_DATACENTRES as u64))]
    pub datacentres: usize,
    /// Border routers of each datacentre
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = whole::<usize>(1..=Network::MOST_ROUTERS as u64))]
    pub routers: usize,
    /// Collective that goes round the ring: allgather, reducescatter, allreduce or alltoall
    #[arg(long, value_name = "K", default_value_t = Collective::AllGather)]
    pub collective: Collective,
    /// MB (10⁶ bytes) of a chunk
    #[arg(long, value_name = "MB", default_value_t = 32.0, value_parser = above_zero)]
    pub mb: f64,
    /// Time that a signal takes between datacentres
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub delay: Micros,
    /// Time that it takes over a link inside one
    #[arg(long, value_name = "TIME", default_value = "1us")]
    pub inside_delay: Micros,
    /// Least and most Gbit/s between datacentres
    #[arg(long, value_name = "LOW,HIGH", default_value = "10,100", value_parser = range)]
    pub between_gbps: [f64; 2],
    /// Least and most Gbit/s inside a datacentre
    #[arg(long, value_name = "LOW,HIGH", default_value = "20,200", value_parser = range)]
    pub inside_gbps: [f64; 2],
    /// How border routers pass messages on: cut-through or store-and-forward
    #[arg(long, value_name = "HOW", default_value = "cut-through")]
    pub forwarding: Forwarding,
    /// Correlation of the traffic from one collective to the next, from 0 to below 1
    #[arg(long, value_name = "RHO", default_value_t = 0.0, value_parser = number::<f64>)]
    pub rho: f64,
    /// Collectives after which links are seen
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u16>(..=1000))]
    pub lag: u16,
    /// Collectives to run [default: 100000; 20000 in each cell of --grid; 2000 of each trace with --policy]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    pub collectives: Option<u64>,
    /// Collectives from one rebuilding of the ring to the next
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u64>(1..))]
    pub cadence: u64,
    /// How rings are searched: exact, held-karp or local [default: the best that is quick enough]
    #[arg(long, value_name = "HOW", conflicts_with = "policy")]
    pub search: Option<Method>,
    /// The four modes for chunks of 8 to 64 MB and delays of 10 µs to 10 ms
    #[arg(long, conflicts_with_all = ["mb", "delay", "policy"])]
    pub grid: bool,
    /// Who decides when to change, costs included: a policy's file, "learned" for the one that comes with the
    /// program, or "none" for cadences and triggers alone
    #[arg(long, value_name = "FILE|learned|none", conflicts_with = "cadence")]
    pub policy: Option<PathBuf>,
    /// ms that rebuilding the ring costs
    #[arg(long, value_name = "MS", default_value_t = 100.0, value_parser = number::<f64>, requires = "policy")]
    pub rebuild_ms: f64,
    /// ms that changing a route costs
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = number::<f64>, requires = "policy")]
    pub reroute_ms: f64,
    /// Traces to judge on, and as many to tune on; ± is over them
    #[arg(long, value_name = "N", default_value_t = 5, requires = "policy")]
    #[arg(value_parser = whole::<u16>(1..=1000))]
    pub traces: u16,
    /// Write the result as a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Two numbers above zero, the smaller first.
fn range(s: &str) -> Result<[f64; 2], String> {
    let ends =
        s.split_once(',').and_then(|(low, high)| Some([above_zero(low).ok()?, above_zero(high).ok()?]));
    let ends = ends.filter(|[low, high]| low <= high);
    ends.ok_or_else(|| "give two numbers above 0, the smaller first, like 10,100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers() {
        assert_eq!(range("10,100"), Ok([10.0, 100.0]));
        for bad in ["10", "10-100", "a,b", "100,10", "0,1", "1,inf"] {
            assert!(range(bad).unwrap_err().contains("10,100"), "{bad}");
        }
    }
}
