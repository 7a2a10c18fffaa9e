//! Collectives across datacentres: rings over a WAN whose links change, and when to change with them.
//!
//! Datacentres hold GPUs and border routers; every link has a bandwidth that traffic takes from and gives back
//! between two collectives. A collective runs on a ring of GPUs; its crossings between datacentres take one of
//! several routes. Rerouting is cheap and quick, rebuilding the ring is dear and slow. The model reproduces a
//! published study of the two (`docs/reconfiguration.md`) and is an environment to learn in.
//!
//! Times are in ms, bandwidths in Gbit/s, chunks in MB of 10⁶ bytes. Nothing here knows NCCL's knobs, a network
//! that learns, or a command line.

mod arrangement;
mod clock;
pub mod compare;
pub mod control;
mod course;
mod curriculum;
pub mod env;
mod error;
mod modes;
mod network;
mod operation;
mod outlook;
mod ring;
mod schedule;
mod search;
mod setting;
mod traffic;
mod trend;

pub use arrangement::{Arrangement, Routes, Work};
pub use clock::Clock;
pub use course::{Course, Passed};
pub use curriculum::{Lesson, Reference, WanCurriculum};
pub use env::{WanEnv, WanInfo};
pub use error::WanError;
pub use modes::{Mode, ModeRun, Modes};
pub use network::{Datacentre, Network};
pub use operation::{Costs, Done, Operation, Prospect};
pub use ring::Ring;
pub use schedule::Schedule;
pub use search::{Method, Search};
pub use setting::{Forwarding, Setting};
pub use traffic::{Sample, Traffic};
