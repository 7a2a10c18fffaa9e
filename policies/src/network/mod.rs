//! The network of the agent in plain Rust: what it says depends on its weights and inputs alone, to
//! the bit, on every CPU. It knows neither files nor training.
//!
//! The equations are in `docs/network.md`. A decision takes three steps, so that what changes rarely
//! is worked out rarely: [`Memory`] holds what past calls have left, [`JobSum`] what a job adds to the
//! context of its calls, and [`Network::act`] does the rest for one call.

pub mod activation;
mod forward;
mod heads;
mod job_sum;
mod layout;
mod linear;
mod memory;
mod net;
mod shape;
mod surprise;
mod weights;

pub use forward::Scratch;
pub use heads::{Acted, Estimates, Gain, greedy};
pub use job_sum::JobSum;
pub use memory::Memory;
pub use net::Network;
pub use shape::{BANDS, EXPERTS, Shape, TENSORS};
pub use surprise::Surprise;
pub use weights::{TRAINED, Weights};
