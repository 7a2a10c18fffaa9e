//! The network of the agent in plain Rust: what it says depends on its weights and inputs alone, to
//! the bit, on every CPU. It knows neither files nor training.

mod shape;
mod weights;

pub use shape::{EXPERTS, Shape, TENSORS};
pub use weights::Weights;
