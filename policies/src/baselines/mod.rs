//! The simplest tuners: what every other one must beat, or cannot.
//!
//! None of them learns, so each is a few lines. What searches or learns lives beside, in modules of its own.

mod fixed;
mod nccl;
mod random;

pub use fixed::Fixed;
pub use nccl::Nccl;
pub use random::Uniform;

#[cfg(test)]
mod tests;
