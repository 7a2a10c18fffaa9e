//! The other side of the plugin's border: opens the library as NCCL does, and asks it what it would do.
//!
//! It stands by itself because a library cannot be opened without `unsafe`, which the command line forbids
//! itself. It knows NCCL's interfaces and nothing of the plugin's insides, so that what it finds is what NCCL
//! will find.

mod answers;
mod calls;
mod conf;
mod driver;
mod env;
mod library;
mod logger;
mod nccl;
mod tuner;

pub use answers::{Answers, ask};
pub use conf::{Configured, configured};
pub use driver::{Driver, Seen};
pub use env::Handed;
pub use library::{OpenError, Plugin};
pub use nccl::{NcclVersion, VersionError};
pub use tuner::Decisions;
