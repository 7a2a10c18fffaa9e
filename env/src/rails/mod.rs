//! Photonic rails: jobs whose servers are joined by optical circuits that change while the job runs.
//!
//! After "Photonic Rails in ML Datacenters" (arXiv 2507.08119): circuits serve data or pipeline parallelism at
//! a time, a control plane changes them between calls, and the question is when, and which calls had better take
//! another way. Nothing here knows NCCL's knobs, a network that learns, or a command line.

mod ask;
mod baselines;
pub mod bom;
mod control;
mod env;
mod error;
mod fabric;
pub mod features;
pub mod graph;
mod harness;
mod hindsight;
mod job;
mod port;
mod profile;
mod run;
mod stage;
mod technology;
mod timing;
mod weather;
mod weave;

pub use baselines::{Always, Greedy};
pub use control::{Controller, Decision, Past, Request};
pub use env::{RailsEnv, RailsInfo};
pub use error::RailsError;
pub use fabric::{Fabric, Link, Route};
pub use harness::{Iterations, Judged, judge};
pub use hindsight::Plan;
pub use job::{Job, paper_recipe};
pub use port::{Port, Ran, Serves};
pub use profile::{Profile, Profiled};
pub use run::{Ended, Event, Outcome, Run};
pub use stage::{Jitters, Jobs, Networks, RailsStage};
pub use technology::{SCALE_UPS, TECHNOLOGIES, Technology};
pub use timing::{Jitter, Timing};
pub use weather::Weather;
