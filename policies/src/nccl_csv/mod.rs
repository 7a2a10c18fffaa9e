//! The table that NVIDIA's example tuner reads, both ways.
//!
//! It is the one format in which NCCL users exchange decisions today, so a policy can be exported to it
//! and somebody's table can be judged beside a policy. The names and columns here are NVIDIA's. What its
//! reader (NCCL 2.27.5 to 2.30) takes in silence and then does otherwise than was written, ours refuses:
//! an unknown word there means allreduce, ring or simple, and a line with too few columns is dropped.

mod error;
mod rule;
mod table;
mod tuner;

#[cfg(test)]
mod tests;

pub use error::{CsvError, Fault};
pub use rule::{Channels, Rule};
pub use table::{LONGEST_LINE, Line, Table};
pub use tuner::TableTuner;
