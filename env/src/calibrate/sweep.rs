//! Sweeps on real ranks as samples: every line says which knobs ran, and the sweep's machine where.

use super::{Group, sample};
use crate::cluster::{Cluster, ClusterError};
use crate::measure::sweep::Sweep;
use crate::swept::Machine;

/// The samples of a sweep on its machine, and how many of its lines say nothing.
pub fn group(machine: &Machine, sweep: &Sweep) -> Result<(Group, usize), ClusterError> {
    let communicator = machine.communicator()?;
    let rows = sweep.rows.iter().map(|row| row.plain().and_then(|row| sample(&communicator, &row)));
    let samples: Vec<_> = rows.flatten().collect();
    let left_out = sweep.rows.len() - samples.len();
    let cluster = Cluster::clone(&machine.cluster);
    Ok((Group { cluster, communicator, samples, clock: sweep.about.clock }, left_out))
}
