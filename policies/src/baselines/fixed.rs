//! The same knobs for every call, as a user sets them with NCCL's variables.

use dynamiccl_spec::{Decision, Fallback, Knobs, Measure, Query, Tuner};

/// Asks for the same knobs at every call; where they are not legal, NCCL decides.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    knobs: Knobs,
}

impl Fixed {
    /// These knobs.
    pub const fn new(knobs: Knobs) -> Self {
        Fixed { knobs }
    }
}

impl Tuner for Fixed {
    fn name(&self) -> &str {
        "fixed"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        query.settled().unwrap_or_else(|| match query.gated.pass(&self.knobs) {
            (knobs, None) => Decision::chosen(query, knobs),
            (_, Some(_)) => Decision::fallback(query, Fallback::NoEntry),
        })
    }
}
