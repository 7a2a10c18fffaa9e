//! Sweeps on real ranks as samples: every line says which knobs ran, and the sweep's machine where.

use dynamiccl_spec::ChunkChoice;

use super::{Group, sample_in};
use crate::cluster::{Cluster, ClusterError};
use crate::measure::sweep::{Sweep, SweepRow};
use crate::swept::Machine;

/// Lines of a sweep that say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// They ask for what is unavailable on the machine.
    pub settings: usize,
    /// They ask for a chunk size, and the release lets no tuner set it.
    pub chunks: usize,
}

/// The samples of a sweep on its machine, and which of its lines say nothing.
pub fn group(machine: &Machine, sweep: &Sweep) -> Result<(Group, LeftOut), ClusterError> {
    let communicator = machine.started_with(sweep.threads)?;
    let has_knob = communicator.version().has_chunk_knob();
    let (rows, chunks): (Vec<&SweepRow>, Vec<_>) =
        sweep.rows.iter().partition(|row| has_knob || row.chunk == ChunkChoice::Own);
    let sample = |row: &&SweepRow| sample_in(&communicator, &row.without_chunk(), row.chunk);
    let samples: Vec<_> = rows.iter().filter_map(sample).collect();
    let left_out = LeftOut { settings: rows.len() - samples.len(), chunks: chunks.len() };
    let cluster = Cluster::clone(&machine.cluster);
    Ok((Group { cluster, communicator, samples, clock: sweep.about.clock }, left_out))
}
