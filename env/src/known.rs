//! Times that somebody has measured, as the environment asks for them: those of a recorded sweep, or those that real ranks
//! have made so far. Who asks does not know which.

use dynamiccl_spec::{Collective, CostTable, Mask};

use crate::nccl::Realised;

/// Measured times of calls, by what NCCL launches.
pub(crate) trait KnownTimes: std::fmt::Debug + Send + Sync {
    /// NCCL's own table for a call; none where it is the one that the cluster says.
    fn table(&self, _collective: Collective, _bytes: u64) -> Option<CostTable> {
        None
    }

    /// What is left of a mask where only what can be measured may be chosen.
    fn narrow(&self, collective: Collective, bytes: u64, mask: Mask) -> Mask;

    /// The µs of a launch; none where it was not measured.
    fn micros(&self, collective: Collective, bytes: u64, realised: &Realised) -> Option<f64>;

    /// The µs that one call of a launch took, drawn by a number from 0 to 1; none where it was not measured.
    fn draw(&self, collective: Collective, bytes: u64, realised: &Realised, at: f64) -> Option<f64>;
}
