//! A policy that can decide: a network, how sure it must be, and what it is called.
//!
//! It is immutable and shared; what changes from call to call is its tuner's. Where its weights come
//! from, a file or training, is not its business.

mod belief;
mod history;
mod jobs;
mod notes;
mod tuner;

pub use tuner::PolicyTuner;

use crate::guard::Guard;
use crate::network::{Network, Weights};

/// A policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    name: String,
    hash: u64,
    guard: Guard,
    network: Network,
}

impl Policy {
    /// The policy of these weights; `hash` tells it apart from others in logs.
    pub fn new(name: impl Into<String>, weights: &Weights, guard: Guard, hash: u64) -> Self {
        Policy { name: name.into(), hash, guard, network: Network::new(weights) }
    }

    /// Its name in tables and logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells it apart from other policies.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How sure it must be.
    pub fn guard(&self) -> Guard {
        self.guard
    }

    /// Its network.
    pub fn network(&self) -> &Network {
        &self.network
    }
}
