//! Who can say what a synthesised schedule takes on a machine.
//!
//! Schedules are made above this crate, which only looks their times up: whoever knows how to make them hands in
//! one of these. It knows no world and no launch; `carrier.rs` puts both to it.

use std::fmt;
use std::sync::Arc;

use dynamiccl_spec::{Collective, Protocol};

use crate::cluster::Cluster;

/// Knows the schedules of machines.
pub trait Schedules: fmt::Debug + Send + Sync {
    /// Those of a communicator on this many nodes of a cluster with this many ranks in each; none where nobody
    /// makes schedules for such a machine.
    fn of(&self, cluster: &Cluster, nodes: u32, ranks_per_node: u32) -> Option<Arc<dyn Timetable>>;
}

/// What the schedules of one machine take. The same question has the same answer, bit by bit, whoever asks first.
pub trait Timetable: fmt::Debug + Send + Sync {
    /// The schedule of a call; none where there is none.
    fn at(&self, collective: Collective, bytes: u64) -> Option<Scheduled>;
}

/// The schedule of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scheduled {
    /// µs on calm links with nominal constants, without the launch.
    pub micros: f64,
    /// The protocol in which it moves.
    pub protocol: Protocol,
}
