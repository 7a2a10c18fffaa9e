//! What somebody measured: nccl-tests logs, tables collected from public sources, our own sweeps.
//!
//! Readers only. They turn files into rows and say where a file is wrong; they know no model, no
//! cluster and no opinion about whether a number is good. Every reader takes any bytes whatsoever:
//! the worst a file can do is to be refused with one line.

mod circumstances;
mod clock;
mod collective;
mod error;
mod forced;
mod lines;
mod nccl_tests_json;
mod nccl_tests_text;
mod sheet;
mod sniff;
pub mod sweep;
pub mod tables;

use dynamiccl_spec::{Algorithm, Collective, Protocol};

pub use circumstances::Circumstances;
pub use clock::Clock;
pub use error::{Fault, MeasureError};
pub use sniff::read_log_as;

/// One measured time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The collective.
    pub collective: Collective,
    /// Bytes, in nccl-tests' convention.
    pub bytes: u64,
    /// Time of one call in µs.
    pub time_us: f64,
    /// Algorithm and protocol, each only where the source says that it was forced.
    pub pair: (Option<Algorithm>, Option<Protocol>),
    /// Channels, only where the source says that they were forced.
    pub channels: Option<u32>,
    /// Whether send and receive buffer were the same, where the source says so.
    pub in_place: Option<bool>,
}

/// What one log holds: rows of one communicator.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Log {
    /// Ranks of the communicator.
    pub ranks: Option<u32>,
    /// Distinct hosts.
    pub nodes: Option<u32>,
    /// Product name of the GPUs, where all are alike.
    pub gpu: Option<String>,
    /// NCCL's version, as in `2.28.3`.
    pub nccl_version: Option<String>,
    /// The measurements, in the order of the file; never empty.
    pub rows: Vec<Row>,
    /// What the reader noticed but could live with, one line each.
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests;
