//! What the paper does not say about its job and had to be fitted, and how much windows vary.

use serde::{Deserialize, Serialize};

use super::error::RailsError;

/// Times of a job's own work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Floating-point operations that a GPU sustains in a µs.
    pub flops_per_us: f64,
    /// µs of the optimizer's step.
    pub optimizer_us: f64,
    /// µs from when the host could launch a collective that it waits for until it has.
    pub gap_us: f64,
}

/// How far iterations are from the profiled one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Standard deviation of a piece of compute, as a share of it.
    pub compute: f64,
    /// Chance that a stage makes a call in an iteration that the profile does not hold.
    pub surprise: f64,
}

impl Default for Timing {
    /// Fitted to the paper's two figures at 100 ms: 6.5 % is five delays in 7.68 s, and 3.5 % is what windows of 2 ms
    /// (launch) and 32 ms (launch and step) hide of three of them.
    fn default() -> Self {
        Timing { flops_per_us: 2.03e7, optimizer_us: 30e3, gap_us: 2e3 }
    }
}

impl Timing {
    /// Whether such times can be.
    pub fn check(&self) -> Result<(), RailsError> {
        if !(1.0..=1e15).contains(&self.flops_per_us) {
            return Err(RailsError::value("flops_per_us", self.flops_per_us, "give 1 to 1e15"));
        }
        for (what, micros) in [("optimizer_us", self.optimizer_us), ("gap_us", self.gap_us)] {
            if !(0.0..=1e9).contains(&micros) {
                return Err(RailsError::value(what, micros, "give 0 to 1e9"));
            }
        }
        Ok(())
    }
}

impl Jitter {
    /// Whether windows can vary so much.
    pub fn check(&self) -> Result<(), RailsError> {
        for (what, value) in [("jitter", self.compute), ("surprise", self.surprise)] {
            let most = if what == "jitter" { 0.5 } else { 1.0 };
            if !(0.0..=most).contains(&value) {
                return Err(RailsError::value(what, value, format!("give 0 to {most}")));
            }
        }
        Ok(())
    }
}
