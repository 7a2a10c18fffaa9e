//! NCCL by itself: what a job does without a tuner, and the yardstick of all others.

use dynamiccl_spec::{Decision, Measure, Query, Tuner};

/// Leaves every knob to NCCL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nccl;

impl Tuner for Nccl {
    fn name(&self) -> &str {
        "nccl"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        query.settled().unwrap_or_else(|| Decision::chosen(query, query.own()))
    }
}
