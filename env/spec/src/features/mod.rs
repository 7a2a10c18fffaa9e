//! The state vector, `feat-v3`: what a policy sees, in which order, and what each number means.
//!
//! Training and the plugin inside a job share this encoder, so a policy can never be shown a feature
//! that means something else than it learned. [`catalogue`] says what every number is; [`Encoder`]
//! writes them; [`hash()`] covers both and is frozen into every policy file.
//!
//! A row has two parts. The *context* of a call holds rank-invariant features alone: it is what a
//! decision may look at. The *history* describes the call before and what was measured of it: it feeds
//! the LSTM and reaches a decision only through its state, which all ranks receive identically.

pub mod catalogue;
mod encode;
mod hash;
mod hidden;

pub use catalogue::{Block, FEATURES, Feature, Kind, Origin, Part};
pub use encode::{CallContext, Encoder, Feedback, PastCall};
pub use hash::hash;
pub use hidden::Hidden;

/// Version of the encoding; a change that can move a decision gets a new one.
pub const VERSION: &str = "feat-v3";

/// What ln of a ratio of times is divided by: beyond it, a difference no longer counts.
pub const TIME_SCALE: f32 = 8.0;
/// What log2 of bytes is divided by.
pub const SIZE_SCALE: f32 = 40.0;

/// Numbers in the job's part of a context, which changes rarely.
pub const JOB_WIDTH: usize = catalogue::width(Part::Job);
/// Numbers in the call's part of a context.
pub const CALL_WIDTH: usize = catalogue::width(Part::Call);
/// Numbers in a context: the job's, then the call's.
pub const CONTEXT_WIDTH: usize = JOB_WIDTH + CALL_WIDTH;
/// Numbers in a history row.
pub const HISTORY_WIDTH: usize = catalogue::width(Part::History);
