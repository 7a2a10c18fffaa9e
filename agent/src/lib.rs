//! What needs a gradient: the LSTM actor-critic, PPO, the curriculum and its checkpoints. It trains
//! over `dynamiccl-env` and leaves a frozen policy for `dynamiccl-policies`; it never prints.
//!
//! Data flows one way. A [`rollout::Collector`] acts in environments with the plain-Rust network and
//! fills a [`rollout::Rollout`]; [`learn`] turns parts of it into gradients of [`Params`] with burn;
//! the trainer takes steps along them, stage by stage.
#![deny(unsafe_code)]

pub mod ablate;
pub mod adam;
pub mod average;
pub mod check;
pub mod config;
pub mod critic;
pub mod error;
pub mod fit;
pub mod gae;
mod layers;
pub mod learn;
mod matrices;
mod memory_table;
pub mod normal;
pub mod params;
pub mod progress;
pub mod returns;
pub mod rollout;
pub mod run;
pub mod schedule;
pub mod start;
pub mod subject;
pub mod trainer;
pub mod training;
mod wide;

pub use config::Config;
pub use normal::Normaliser;
pub use params::Params;
pub use wide::WideTuner;
