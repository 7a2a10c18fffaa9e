//! The machine in the moment of a call, beside which a fabric was described at rest.

/// The state of the machine around a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Share of the network that others take.
    pub load: f64,
    /// Speed of the slowest rank.
    pub speed: f64,
    /// Share of the NICs that work.
    pub nics: f64,
    /// Drift of network latencies.
    pub latency: f64,
    /// Drift of network bandwidth.
    pub bandwidth: f64,
    /// µs that a fault stalls the next call.
    pub stall: f64,
}

impl Conditions {
    /// Nothing in the way.
    pub const CALM: Conditions =
        Conditions { load: 0.0, speed: 1.0, nics: 1.0, latency: 1.0, bandwidth: 1.0, stall: 0.0 };
}
