//! What real ranks have taken so far, and what is not to be tried again.

use std::collections::BTreeMap;

use dynamiccl_spec::Collective;

use super::caller::Caller;
use crate::swept::{Launch, Times};

/// A call.
pub(super) type Call = (Collective, u64);

/// What is known so far, and who finds out more.
#[derive(Debug)]
pub(super) struct Known {
    pub caller: Box<dyn Caller>,
    /// By call, then by launch.
    pub times: BTreeMap<Call, BTreeMap<Launch, Times>>,
    /// Calls that were decided and timed.
    pub called: u64,
}

impl Known {
    /// Takes in what was timed in a row.
    pub fn add(&mut self, call: Call, launch: Launch, rounds: &[f64]) {
        if !rounds.is_empty() {
            self.times.entry(call).or_default().entry(launch).or_default().add_rounds(rounds);
        }
    }

    /// The times of a launch.
    pub fn of(&self, call: &Call, launch: &Launch) -> Option<&Times> {
        self.times.get(call)?.get(launch)
    }

    /// Whether a launch is known to take more than so many times as long as NCCL's own.
    pub fn is_slow(&self, call: &Call, own: &Launch, launch: &Launch, slowdown: f64) -> bool {
        let times = self.of(call, launch).zip(self.of(call, own));
        times.is_some_and(|(times, own)| times.micros() > slowdown * own.micros())
    }
}
