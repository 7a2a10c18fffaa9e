//! The machine that a sweep was measured on.

use std::path::Path;

use super::SweptError;
use crate::calibrate::sweep::linked;
use crate::cluster::{Cluster, ClusterError};
use crate::measure::sweep::{Link, Sweep};
use crate::workload::Placement;

/// The cluster that ranks sharing one GPU over this link make: each is a node of it.
pub fn shared_gpu(link: Link) -> Result<Cluster, ClusterError> {
    Ok(linked(&Cluster::load("h200_shared")?, link))
}

/// The cluster of a sweep, and how its ranks lie on it. Unless one is named its ranks share a GPU, as those of published
/// sweeps did, which do not say so.
pub(super) fn of(sweep: &Sweep, named: Option<&Cluster>) -> Result<(Cluster, Placement), SweptError> {
    if named.is_none() && sweep.about.shared == Some(false) {
        return Err(SweptError::Machine { file: sweep.file.clone() });
    }
    machine(sweep.ranks, sweep.link, named, &sweep.file)
}

/// The cluster that ranks over this link run on, and how they lie on it; `whose` ranks they are, for an error.
pub fn machine(
    ranks: u32,
    link: Link,
    named: Option<&Cluster>,
    whose: &Path,
) -> Result<(Cluster, Placement), SweptError> {
    let Some(cluster) = named else {
        let place = Placement { nodes: ranks, ranks_per_node: 1, siblings: 1 };
        return Ok((shared_gpu(link)?, place));
    };
    let gpus = cluster.gpus_per_node.max(1);
    let ranks_per_node = ranks.min(gpus);
    let place = Placement { nodes: ranks / ranks_per_node.max(1), ranks_per_node, siblings: 1 };
    let whole = place.nodes * ranks_per_node == ranks;
    if !whole || !cluster.hosts(place.nodes, ranks_per_node) {
        let (file, cluster) = (whose.to_owned(), cluster.name.clone());
        return Err(SweptError::Ranks { file, ranks, cluster, gpus });
    }
    Ok((cluster.clone(), place))
}
