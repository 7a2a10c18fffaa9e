//! The tuner: one communicator's calls, from NCCL's numbers to knobs and back.
//!
//! Everything here is safe code over plain values. No decision depends on which version of NCCL's interface asks; only
//! what can be said of it does.

pub mod answer;
pub mod call;
pub mod chunk;
pub mod communicator;
pub mod decider;
pub mod driven;
pub mod opening;
pub mod price;
pub mod walk;

#[cfg(test)]
mod tests;
