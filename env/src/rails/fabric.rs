//! How fast each path carries a call, and how long circuits take to change.
//!
//! Three paths: circuits of the whole port, circuits of a port that is split between the axes once and for
//! all, and the packet network of the hosts. All collectives are rings: circuits join neighbours only.

use dynamiccl_spec::Collective;
use serde::{Deserialize, Serialize};

use super::error::RailsError;
use super::graph::Call;

/// A way to carry a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Circuits of the whole port.
    Optical,
    /// The hosts' packet network: no circuits, slower.
    Host,
    /// Circuits of a port whose halves serve both axes at once.
    Split,
}

impl Route {
    /// All of them, in the order of the head.
    pub const ALL: [Route; 3] = [Route::Optical, Route::Host, Route::Split];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Route::Optical => "optical",
            Route::Host => "host",
            Route::Split => "split",
        }
    }
}

/// A link of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// µs that every call takes at least.
    pub latency_us: f64,
    /// GB/s.
    pub gb_per_s: f64,
}

/// The networks of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// µs until new circuits carry light.
    pub delay_us: f64,
    /// A whole port on a rail.
    pub rail: Link,
    /// A GPU's share of the hosts' packet network.
    pub host: Link,
    /// The fast domain of a server.
    pub scale_up: Link,
}

impl Default for Fabric {
    /// The paper's testbed as fitted: Slingshot at 22 of its nominal 25 GB/s. The hosts' network is ours: 100
    /// Gb/s shared by four GPUs, and half a millisecond through the kernel's stack.
    fn default() -> Self {
        Fabric {
            delay_us: 0.0,
            rail: Link { latency_us: 100.0, gb_per_s: 22.0 },
            host: Link { latency_us: 500.0, gb_per_s: 3.125 },
            scale_up: Link { latency_us: 20.0, gb_per_s: 200.0 },
        }
    }
}

impl Fabric {
    /// The same with another delay.
    pub fn with_delay(self, delay_us: f64) -> Self {
        Fabric { delay_us, ..self }
    }

    /// µs that a call takes on a path once it runs.
    pub fn micros(&self, call: &Call, route: Route) -> f64 {
        match route {
            Route::Optical => self.rail.micros(call, 1.0),
            Route::Host => self.host.micros(call, 1.0),
            Route::Split => self.rail.micros(call, 0.5),
        }
    }

    /// Whether such networks can be.
    pub fn check(&self) -> Result<(), RailsError> {
        if !(0.0..=1e9).contains(&self.delay_us) {
            return Err(RailsError::value("delay", format!("{} µs", self.delay_us), "give 0 to 1000 s"));
        }
        for (what, link) in [("rail", self.rail), ("host", self.host), ("scale-up", self.scale_up)] {
            if !(1e-3..=1e5).contains(&link.gb_per_s) {
                return Err(RailsError::value(what, link.gb_per_s, "give 0.001 to 100000 GB/s"));
            }
            if !(0.0..=1e7).contains(&link.latency_us) {
                return Err(RailsError::value(what, link.latency_us, "give a latency of 0 to 10 s"));
            }
        }
        Ok(())
    }
}

impl Link {
    /// µs of a call as a ring over this share of the link.
    fn micros(&self, call: &Call, share: f64) -> f64 {
        self.latency_us + sent_bytes(call) / (self.gb_per_s * 1e3 * share)
    }
}

/// Bytes that each rank sends.
fn sent_bytes(call: &Call) -> f64 {
    let ring = f64::from(call.size.max(1) - 1) / f64::from(call.size.max(1));
    let passes = match call.collective {
        Collective::SendRecv => 1.0,
        Collective::AllReduce => 2.0 * ring,
        _ => ring,
    };
    call.bytes as f64 * passes
}
