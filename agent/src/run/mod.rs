//! The folder of a run: what it was told, what was measured, checkpoints and policies; whole whatever
//! happens, and enough to go on where a run was ended.
//!
//! Nothing here trains or prints. A trainer's state is opaque: anything that can be written as CBOR.

pub mod checkpoint;
pub mod clock;
pub mod error;
mod lock;
pub mod settings;
mod whole;

pub use error::RunError;

/// The file that says what a run was told.
pub const SETTINGS: &str = "config.toml";
/// What gradients are worked out on where nobody says.
pub const USUAL_DEVICE: &str = "flex";
