//! Everything that produces a time or a reward: clusters, NCCL's own decision, the performance
//! model and the environment over them.
//!
//! Data goes one way: a cluster gives NCCL's decision its graphs and the model its links; a world
//! draws the model's hidden constants; the environment asks both. Nothing here knows how a policy is
//! trained or what a command line looks like.
#![forbid(unsafe_code)]

pub mod asking;
pub mod calibrate;
mod carrier;
pub mod cluster;
pub mod curriculum;
pub mod evaluate;
pub mod gym;
pub mod headroom;
pub mod job;
mod known;
pub mod least_squares;
pub mod lived;
pub mod measure;
mod memory;
pub mod model;
pub mod nccl;
pub mod question;
pub mod rails;
pub mod recall;
pub mod reward;
pub mod schedules;
pub mod sim;
pub mod sim_env;
pub mod statistics;
pub mod swept;
pub mod text;
pub mod threads;
pub mod trace;
pub mod trigger;
pub mod tuccl;
pub mod validate;
pub mod wan;
pub mod whole;
pub mod workload;
pub mod world;
