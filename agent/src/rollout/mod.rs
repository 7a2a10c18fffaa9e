//! Gathering experience: many environments side by side, each acted in by the plain-Rust network.

mod buffer;

pub use buffer::{Rollout, Source, Truth};
