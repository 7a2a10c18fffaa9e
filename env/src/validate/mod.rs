//! The simulator held against measurements.
//!
//! Two questions with two answers: how far times are off (`tables`, against what people measured on
//! their clusters with NCCL's own choices), and whether the knobs that the model ranks first are good
//! ones (`sweeps`, against every knob measured on one machine). The second decides whether training in
//! the simulator means anything.

mod describe;
pub mod sweeps;
pub mod tables;

pub use describe::Describer;
