//! NCCL's own decision, reproduced exactly.
//!
//! It is the baseline that every policy is judged against and part of what a policy sees, so it
//! follows NCCL's arithmetic to the last float bit and never borrows a number from our model.
//!
//! [`CommSpec`] says what NCCL knows of a communicator; [`Communicator`] answers what NCCL does with a
//! call, and what becomes of other knobs.

mod bandwidth;
mod comm;
mod constants;
mod decide;
mod enable;
pub mod graph;
pub mod host;
mod latency;
mod launch;
mod nvls;
mod realise;
mod shape;
mod threads;
mod version;

pub use comm::{CommSpec, Communicator};
pub use decide::Decision;
pub use launch::{Launch, chunk_ceiling};
pub use realise::Realised;
pub use version::Version;
