//! Everything that can keep a schedule from being made, each with its place and its remedy.

use dynamiccl_env::cluster::ClusterError;
use thiserror::Error;

/// Why there is no schedule.
#[derive(Debug, Error)]
pub enum SynthError {
    /// This machine cannot be made.
    #[error("{machine}: {what}: {remedy}")]
    Machine {
        /// The machine.
        machine: String,
        /// What was asked for.
        what: String,
        /// What to ask for instead.
        remedy: String,
    },
    /// Its cluster has no such nodes.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The path.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{file}: {place}: {problem}")]
    Format {
        /// The file.
        file: String,
        /// Where in it.
        place: String,
        /// What is wrong, and what is expected.
        problem: String,
    },
    /// Some rank cannot be reached over the links of the sketch.
    #[error("sketch {sketch}: rank {rank} is never reached by chunk {chunk}: add a link to it")]
    Unreached {
        /// The sketch.
        sketch: String,
        /// The rank.
        rank: u32,
        /// The chunk.
        chunk: u32,
    },
    /// No ring runs over the links of the sketch.
    #[error(
        "sketch {sketch}: no ring through all ranks over its links: use greedy or tree, or another sketch"
    )]
    NoRing {
        /// The sketch.
        sketch: String,
    },
    /// Somebody wanted it to end.
    #[error("stopped before the schedule was made: make it again")]
    Stopped,
    /// The collective has no schedule.
    #[error("{0} is not synthesised: take broadcast, reduce, allgather, reducescatter or allreduce")]
    Collective(dynamiccl_spec::Collective),
    /// The schedule does not fit into what MSCCL's executors run.
    #[error("rank {rank}: {what} {value} is above the executors' limit of {limit}: {remedy}")]
    Limit {
        /// The rank.
        rank: u32,
        /// What is too large.
        what: &'static str,
        /// How large it is.
        value: usize,
        /// How large it may be.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
}
