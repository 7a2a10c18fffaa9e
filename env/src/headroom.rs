//! How much the best setting beats NCCL's own: what there is to learn, and whether the worlds are fair to
//! NCCL.
//!
//! A policy can learn to win whatever the model lets it win, so what there is to win must be what was
//! measured somewhere. This only asks the simulator; it changes no time and knows no band.

use dynamiccl_spec::Collective;
use dynamiccl_spec::math::{exp, ln};

use crate::cluster::{Cluster, CommOptions};
use crate::sim::{Setting, Simulator};
use crate::statistics::geometric_mean;
use crate::world::World;

/// Node counts that are asked for, where a cluster has graphs for them.
pub const NODES: [u32; 5] = [1, 2, 4, 8, 16];

/// One collective of one size on one communicator.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The cluster's name.
    pub cluster: String,
    /// Its nodes.
    pub nodes: u32,
    /// The farthest tier that it crosses.
    pub tier: u8,
    /// The collective.
    pub collective: Collective,
    /// Its size, as NCCL counts it.
    pub bytes: u64,
    /// NCCL's own true time over the best setting's, geometric mean over the worlds.
    pub headroom: f64,
    /// NCCL's own setting in the first world.
    pub own: Setting,
    /// The best setting in the first world.
    pub best: Setting,
}

/// Sizes that are asked for: 1 KiB to 1 GiB in powers of 4.
pub fn sizes() -> Vec<u64> {
    (10..=30).step_by(2).map(|octave| 1 << octave).collect()
}

/// Every cell of a cluster on these node counts, at these sizes.
pub fn survey(cluster: &Cluster, nodes: &[u32], sizes: &[u64], worlds: &[World]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &nodes in nodes {
        let simulators: Result<Vec<_>, _> = worlds
            .iter()
            .map(|world| Simulator::new(cluster, nodes, &CommOptions::default(), world))
            .collect();
        // A cluster file need not have graphs for one node, or for several.
        let Ok(simulators) = simulators else { continue };
        for collective in Collective::TUNED {
            for &bytes in sizes {
                if let Some((headroom, own, best)) = headroom(&simulators, collective, bytes) {
                    let (cluster, tier) = (cluster.name.clone(), cluster.tier(nodes));
                    cells.push(Cell { cluster, nodes, tier, collective, bytes, headroom, own, best });
                }
            }
        }
    }
    cells
}

/// Geometric mean of the cells' headroom; nothing without cells.
pub fn mean<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Option<f64> {
    geometric_mean(cells.into_iter().map(|cell| cell.headroom))
}

/// Geometric mean over the worlds, and the two settings in the first of them.
fn headroom(simulators: &[Simulator], collective: Collective, bytes: u64) -> Option<(f64, Setting, Setting)> {
    let mut logs = 0.0;
    let mut first = None;
    for simulator in simulators {
        let (own, best) = (simulator.own(collective, bytes)?, simulator.best(collective, bytes)?);
        logs += ln(own.micros / best.micros);
        first = first.or(Some((own, best)));
    }
    let (own, best) = first?;
    Some((exp(logs / simulators.len() as f64), own, best))
}
