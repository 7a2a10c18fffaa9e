//! The machine that a sweep was measured on.

use std::path::Path;
use std::sync::Arc;

use dynamiccl_spec::Overrides;

use super::SweptError;
use super::release::Release;
use crate::cluster::{Cluster, ClusterError, CommOptions, InterLink};
use crate::job::{Job, Setting, Shown, Source};
use crate::measure::sweep::{About, Link, Sweep};
use crate::nccl::Communicator;
use crate::workload::Placement;

/// What of a line rate TCP payload reaches, with headers and acknowledgements paid.
const PAYLOAD_SHARE: f64 = 0.99;

/// What ranks run on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The cluster, as they are linked.
    pub cluster: Arc<Cluster>,
    /// How they lie on it.
    pub place: Placement,
    /// What links them. Not every cluster looks different for it.
    pub link: Link,
    /// The release of NCCL.
    pub release: Release,
}

impl Machine {
    /// The communicator of all ranks, with NCCL's own threads.
    pub(crate) fn communicator(&self) -> Result<Communicator, ClusterError> {
        self.started_with(None)
    }

    /// The communicator of ranks that were started with so many threads of a block, or with NCCL's own. NCCL's times do not
    /// depend on them, so that it takes the same pairs, but with fewer threads it takes other channels.
    pub(crate) fn started_with(&self, threads: Option<u32>) -> Result<Communicator, ClusterError> {
        let (ranks_per_node, version) = (Some(self.place.ranks_per_node), self.release.version);
        let overrides = Overrides { threads, ..Overrides::default() };
        let options = CommOptions { ranks_per_node, version, overrides, ..CommOptions::default() };
        self.cluster.communicator(self.place.nodes, &options)
    }

    /// A job whose calls were timed there, of which a policy is told this much.
    pub(crate) fn job(&self, source: Source, shown: Shown) -> Job {
        let class = self.cluster.inter.as_ref().map_or_else(Default::default, |inter| inter.class);
        Job {
            cluster: Arc::clone(&self.cluster),
            nodes: self.place.nodes,
            source,
            setting: Setting { class, version: self.release.version, ..Setting::default() },
            shown,
            feedback_every: Some(1),
            world: 0,
        }
    }

    /// Whether another one is the same, whatever their clusters are called.
    pub(super) fn is_like(&self, other: &Machine) -> bool {
        let how = |machine: &Machine| (machine.place, machine.link, machine.release.clone());
        let cluster = Cluster { name: other.cluster.name.clone(), ..Cluster::clone(&self.cluster) };
        how(self) == how(other) && cluster == *other.cluster
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.place.nodes * self.place.ranks_per_node
    }
}

/// The cluster as its ranks were linked: over loopback, or over shaped links in its place.
fn linked(cluster: &Cluster, link: Link) -> Cluster {
    let mut cluster = cluster.clone();
    let loopback = cluster.inter.as_mut().filter(|inter| inter.link == InterLink::TcpLoopback);
    if let (Link::Rate(rate), Some(inter)) = (link, loopback) {
        inter.link = InterLink::TcpVeth;
        inter.bandwidth = rate.0 * PAYLOAD_SHARE;
        inter.shaped = true;
    }
    cluster
}

/// The cluster that ranks sharing one GPU over this link make: each is a node of it.
fn shared_gpu(link: Link) -> Result<Cluster, ClusterError> {
    Ok(linked(&Cluster::load("h200_shared")?, link))
}

/// The machine of a sweep. One must be named unless its ranks shared a GPU, as those of published sweeps did, of which only
/// the link says so.
pub(crate) fn of(sweep: &Sweep, named: Option<&Cluster>) -> Result<Machine, SweptError> {
    if named.is_none() && !sweep.about.shares_gpu(sweep.link) {
        return Err(SweptError::Machine { file: sweep.file.clone() });
    }
    machine(sweep.ranks, sweep.link, &sweep.about, named, &sweep.file)
}

/// The machine that ranks over this link run on, with what is known about them; `whose` ranks they are, for an error.
pub fn machine(
    ranks: u32,
    link: Link,
    about: &About,
    named: Option<&Cluster>,
    whose: &Path,
) -> Result<Machine, SweptError> {
    let release = Release::stated(about.nccl.as_deref(), whose)?;
    let cluster = Arc::new(named.map_or_else(|| shared_gpu(link), |named| Ok(linked(named, link)))?);
    let (file, name, gpus) = (whose.to_owned(), cluster.name.clone(), cluster.gpus_per_node.max(1));
    if gpus > 1 && about.shares_gpu(link) {
        return Err(match about.shared {
            Some(_) => SweptError::Shared { file, cluster: name, gpus },
            None => SweptError::Linked { file, link, cluster: name, gpus },
        });
    }
    // Ranks that share a GPU are hosts of their own to NCCL, whatever machines they were on.
    let shared = about.shared == Some(true);
    let said = if shared { [None; 2] } else { [about.nodes, about.ranks_per_node] };
    let place = place(ranks, said, gpus);
    let Placement { nodes, ranks_per_node, .. } = place;
    let whole = nodes.checked_mul(ranks_per_node) == Some(ranks);
    // Of an unnamed cluster its own error says more.
    if !whole || named.is_some() && !cluster.hosts(nodes, ranks_per_node) {
        return Err(if said == [None; 2] {
            SweptError::Ranks { file, ranks, cluster: name, gpus }
        } else {
            SweptError::Layout { file, ranks, nodes, ranks_per_node, cluster: name, gpus }
        });
    }
    Ok(Machine { cluster, place, link, release })
}

/// How ranks lie on nodes of so many GPUs: as somebody says, and else they fill them.
fn place(ranks: u32, said: [Option<u32>; 2], gpus: u32) -> Placement {
    let [nodes, each] = said;
    let ranks_per_node = each.or_else(|| Some(ranks.div_ceil(nodes?.max(1)))).unwrap_or(ranks.min(gpus));
    let nodes = nodes.unwrap_or(ranks / ranks_per_node.max(1));
    Placement { nodes, ranks_per_node, siblings: 1 }
}
