//! NCCL's own decision, reproduced exactly.
//!
//! It is the baseline that every policy is judged against and part of what a policy sees, so it
//! follows NCCL's arithmetic to the last float bit and never borrows a number from our model.

pub mod graph;
