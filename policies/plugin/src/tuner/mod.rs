//! The tuner: one communicator's calls, from NCCL's numbers to knobs and back.
//!
//! Everything here is safe code over plain values. Of the version of NCCL's interface a decision depends on one thing,
//! whether it asks for chunk sizes at all.

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
