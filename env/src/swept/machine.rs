//! The machine that a sweep was measured on.

use super::SweptError;
use crate::calibrate::sweep::linked;
use crate::cluster::{Cluster, ClusterError};
use crate::measure::sweep::{Link, Sweep};
use crate::workload::Placement;

/// The cluster that ranks sharing one GPU over this link make: each is a node of it.
pub fn shared_gpu(link: Link) -> Result<Cluster, ClusterError> {
    Ok(linked(&Cluster::load("h200_shared")?, link))
}

/// The cluster of a sweep, and how its ranks lie on it.
pub(super) fn of(sweep: &Sweep, named: Option<&Cluster>) -> Result<(Cluster, Placement), SweptError> {
    let Some(cluster) = named else {
        let place = Placement { nodes: sweep.ranks, ranks_per_node: 1, siblings: 1 };
        return Ok((shared_gpu(sweep.link)?, place));
    };
    let gpus = cluster.gpus_per_node.max(1);
    let ranks_per_node = sweep.ranks.min(gpus);
    let place = Placement { nodes: sweep.ranks / ranks_per_node.max(1), ranks_per_node, siblings: 1 };
    let whole = place.nodes * ranks_per_node == sweep.ranks;
    if !whole || !cluster.hosts(place.nodes, ranks_per_node) {
        let (file, ranks, cluster) = (sweep.file.clone(), sweep.ranks, cluster.name.clone());
        return Err(SweptError::Ranks { file, ranks, cluster, gpus });
    }
    Ok((cluster.clone(), place))
}
