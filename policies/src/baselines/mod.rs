//! The simplest tuners: what every other one must beat, or cannot.
//!
//! None of them learns, so each is a few lines. What searches or learns lives beside, in modules of its own.

mod fixed;
mod nccl;
mod random;

pub use fixed::Fixed;
pub use nccl::Nccl;
pub use random::Uniform;

use crate::roster::Entry;

/// Those that need nothing but a seed.
pub const ROSTER: &[Entry] = &[
    Entry { name: "nccl", make: |_| Box::new(Nccl) },
    Entry { name: "random", make: |seed| Box::new(Uniform::new(seed)) },
];

#[cfg(test)]
mod tests;
