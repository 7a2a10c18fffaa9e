//! Gathering experience: many environments side by side, each acted in by the plain-Rust network.
//!
//! An environment is stepped by one thread for a whole sequence and has random numbers of its own, so a
//! rollout is the same for any number of threads.

mod buffer;
mod collector;
mod sample;
mod seat;
mod tally;
mod trainable;
mod tried;

pub use buffer::{After, Rollout, Source, Truth};
pub use collector::{Collected, Collector};
pub use seat::SavedSeat;
pub use tally::Tally;
pub use trainable::{Outcome, Trainable};

use dynamiccl_spec::Head;
use dynamiccl_spec::ids::PAIRS;

/// Numbers of a truth: pair × channels × chunk.
pub const CHOICES: usize = PAIRS * Head::Channels.size() * Head::Chunk.size();
