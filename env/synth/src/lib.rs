//! Schedules that no catalogue has: the links of a machine, which of them to use, who sends what when,
//! the proof that it is right and the time that it takes.
//!
//! Data goes one way: [`machine`] → [`sketch`] → [`synthesis`] → [`verify`] and [`execute`] → [`msccl`].
//! [`plan`] picks the best schedule of a call, [`joint`] tunes all of it together.
//! Nothing here knows how a policy decides or how a search searches.
#![forbid(unsafe_code)]

pub mod backend;
mod bits;
pub mod bound;
pub mod capacity;
mod connections;
pub mod discover;
pub mod error;
pub mod execute;
pub mod joint;
pub mod library;
pub mod machine;
pub mod msccl;
pub mod picture;
pub mod plan;
pub mod schedule;
pub mod sketch;
pub mod stop;
pub mod synthesis;
pub mod verify;
mod xml;

pub use backend::Backend;
pub use error::SynthError;
pub use execute::Executor;
pub use machine::Machine;
pub use schedule::{Phase, Schedule, Send};
pub use sketch::{Mode, Sketch};
pub use synthesis::{Assume, Recipe, Synthesizer, synthesize};
