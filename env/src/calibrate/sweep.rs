//! Sweeps on real ranks as samples: every line says which knobs ran, and the file says what linked the ranks.

use super::{Group, sample};
use crate::cluster::{Cluster, ClusterError, CommOptions, InterLink};
use crate::measure::sweep::{Link, Sweep};
use crate::nccl::Version;

/// What of a line rate TCP payload reaches, with headers and acknowledgements paid.
const PAYLOAD_SHARE: f64 = 0.99;

/// The cluster as its ranks were linked: over loopback, or over shaped links in its place.
pub fn linked(cluster: &Cluster, link: Link) -> Cluster {
    let mut cluster = cluster.clone();
    let loopback = cluster.inter.as_mut().filter(|inter| inter.link == InterLink::TcpLoopback);
    if let (Link::Rate(rate), Some(inter)) = (link, loopback) {
        inter.link = InterLink::TcpVeth;
        inter.bandwidth = rate.0 * PAYLOAD_SHARE;
        inter.shaped = true;
    }
    cluster
}

/// The samples of a sweep, and how many of its lines say nothing. Ranks that share a GPU are hosts of their own to
/// NCCL; those of a machine fill its nodes, of which there are `nodes`.
pub fn group(
    cluster: &Cluster,
    sweep: &Sweep,
    nodes: u32,
    version: Version,
) -> Result<(Group, usize), ClusterError> {
    let cluster = linked(cluster, sweep.link);
    let (nodes, local) = match sweep.link {
        Link::Machine => (nodes, sweep.ranks.div_ceil(nodes.max(1))),
        Link::Loopback | Link::Rate(_) => (sweep.ranks, 1),
    };
    let options = CommOptions { ranks_per_node: Some(local), version, ..CommOptions::default() };
    let communicator = cluster.communicator(nodes, &options)?;
    let rows = sweep.rows.iter().map(|row| row.plain().and_then(|row| sample(&communicator, &row)));
    let samples: Vec<_> = rows.flatten().collect();
    let left_out = sweep.rows.len() - samples.len();
    Ok((Group { cluster, communicator, samples, clock: sweep.about.clock }, left_out))
}
