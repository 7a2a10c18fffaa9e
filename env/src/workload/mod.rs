//! The calls of one training iteration, from the shape of a model and how it is spread.
//!
//! Volumes, order, roles and the compute in between: everything about a job that does not depend on
//! how fast its network is. Nothing here knows the time of a collective, a cluster or NCCL; whoever
//! does asks for a [`Program`] and puts times to its calls.

mod block;
mod bucket;
mod compression;
mod error;
mod group;
mod iteration;
mod layer;
mod layout;
mod model;
mod pass;
mod planned;
mod presets;
mod recipe;
mod replicas;
mod script;

pub use compression::{Effective, effective, usual_rate};
pub use error::WorkloadError;
pub use group::{Group, Placement};
pub use iteration::iteration;
pub use layout::Layout;
pub use model::ModelShape;
pub use planned::{Phase, Planned, Program};
pub use presets::presets;
pub use recipe::{BUCKET_BYTES, FIRST_BUCKET_BYTES, Recipe};
