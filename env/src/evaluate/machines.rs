//! Where tuners are judged: every cluster on a few node counts, and which of them are held out.

use std::sync::Arc;

use crate::cluster::{Cluster, ClusterError, CommOptions};
use crate::nccl::Version;
use crate::once::once;

/// Clusters of the default set that no curriculum contains, reported apart.
pub const HELD_OUT: [&str; 6] =
    ["dgx2_v100", "aws_p5en", "hgx_b200", "ib400g_1gpu", "a100_8_tcp100g", "tcp10g_1gpu"];
/// Machines of published studies: AutoCCL's comparison, rings across datacentres, photonic rails. No curriculum contains them;
/// they are judged only where they are named, and reported apart.
pub const TESTBEDS: [&str; 4] = ["a40_8_nvlink", "a40_8_pcie", "photonic_a100", "wan100g_1gpu"];
/// Node counts that are asked for, where a cluster has graphs for them.
pub const NODES: [u32; 3] = [1, 2, 8];

/// A cluster on some of its nodes.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// Its nodes.
    pub nodes: u32,
    /// The tier of a communicator over all of them.
    pub tier: u8,
    /// Whether no curriculum contains it.
    pub held_out: bool,
    /// Which release of NCCL runs there.
    pub nccl: Version,
}

impl Machine {
    /// A cluster on this many nodes; none where NCCL could make no communicator there.
    pub fn new(cluster: &Arc<Cluster>, nodes: u32) -> Option<Self> {
        let held_out = is_held_out(cluster);
        cluster.hosts(nodes, cluster.gpus_per_node).then(|| Machine {
            cluster: Arc::clone(cluster),
            nodes,
            tier: cluster.tier(nodes),
            held_out,
            nccl: Version::default(),
        })
    }

    /// The same with another release of NCCL.
    pub fn with_nccl(self, nccl: Version) -> Self {
        Machine { nccl, ..self }
    }

    /// How communicators are made there.
    pub(super) fn options(&self) -> CommOptions {
        CommOptions { version: self.nccl, ..CommOptions::default() }
    }

    /// These clusters (where none is named, all that come with the program but the testbeds) on these node
    /// counts, as far as they are of these tiers. What is named twice counts once; an error where a job would have more
    /// ranks than can be counted with.
    pub fn list(clusters: &[String], nodes: &[u32], tiers: &[u8]) -> Result<Vec<Machine>, ClusterError> {
        let clusters: Vec<Cluster> = match clusters {
            [] => default_names().map(Cluster::load).collect::<Result<_, _>>()?,
            named => named.iter().map(|name| Cluster::load(name)).collect::<Result<_, _>>()?,
        };
        let clusters: Vec<_> = once(&clusters).into_iter().map(Arc::new).collect();
        let nodes = once(nodes);
        for cluster in &clusters {
            nodes.iter().try_for_each(|&nodes| cluster.ranks(nodes, cluster.gpus_per_node).map(|_| ()))?;
        }
        let machines = clusters.iter().flat_map(|c| nodes.iter().filter_map(|&nodes| Machine::new(c, nodes)));
        Ok(machines.filter(|machine| tiers.contains(&machine.tier)).collect())
    }
}

fn default_names() -> impl Iterator<Item = &'static str> {
    Cluster::names().filter(|name| !TESTBEDS.contains(name))
}

/// Whether no curriculum that comes with the program contains a cluster, near or far; so it is with every file that is
/// not one of the program's own.
pub fn is_held_out(cluster: &Cluster) -> bool {
    let (name, tier) = cluster.moved_from();
    let trained = !HELD_OUT.contains(&name) && !TESTBEDS.contains(&name);
    !(trained && Cluster::load_at(name, tier).is_ok_and(|known| known == *cluster))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::curriculum::Curriculum;

    #[test]
    fn every_tier_has_machines_and_what_is_held_out_is_in_no_curriculum() {
        let machines = Machine::list(&[], &NODES, &[1, 2, 3, 4]).unwrap();
        assert!((1..=4).all(|tier| machines.iter().any(|m| m.tier == tier && !m.held_out)));
        let held_out: BTreeSet<_> =
            machines.iter().filter(|m| m.held_out).map(|m| m.cluster.name.as_str()).collect();
        assert_eq!(held_out, HELD_OUT.into_iter().collect());
    }

    /// A cluster is held out exactly where no curriculum contains it, testbeds included.
    #[test]
    fn what_is_held_out_is_what_no_curriculum_contains() {
        let mut trained = BTreeSet::new();
        for curriculum in Curriculum::names() {
            for stage in Curriculum::load(curriculum).unwrap().stages {
                assert!(!stage.clusters.iter().any(|cluster| is_held_out(cluster)), "{curriculum}");
                trained.extend(stage.clusters.iter().map(|cluster| cluster.name.clone()));
            }
        }
        for name in Cluster::names() {
            let cluster = Cluster::load(name).unwrap();
            assert_eq!(is_held_out(&cluster), !trained.contains(name), "{name}");
        }
        let default: Vec<_> = default_names().collect();
        assert!(TESTBEDS.iter().all(|name| !default.contains(name)));
        let named = Machine::list(&TESTBEDS.map(str::to_owned), &[2], &[1, 2, 3, 4]).unwrap();
        assert!(named.len() == TESTBEDS.len() && named.iter().all(|machine| machine.held_out));
    }

    #[test]
    fn a_cluster_that_was_changed_is_held_out_whatever_it_is_called() {
        let known = Cluster::load("dgx_a100").unwrap();
        assert!(!is_held_out(&known));
        assert!(is_held_out(&Cluster { description: "mine".to_owned(), ..known }));
    }

    #[test]
    fn what_is_named_twice_counts_once() {
        let named = ["dgx_a100", "dgx_a100"].map(str::to_owned);
        let machines = Machine::list(&named, &[1, 2, 1], &[1, 2, 3, 4]).unwrap();
        assert_eq!(machines.iter().map(|m| m.nodes).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn more_nodes_than_can_be_counted_with_are_not_left_out() {
        let named = ["ib100g_1gpu", "dgx_a100"].map(str::to_owned);
        let refused = Machine::list(&named, &[2, 1 << 29], &[1, 2, 3, 4]).unwrap_err().to_string();
        assert!(refused.contains("give 1 to 1048576 nodes"), "{refused}");
    }

    #[test]
    fn a_cluster_without_graphs_for_one_node_starts_at_two() {
        let named = ["ib100g_1gpu".to_owned()];
        let nodes = Machine::list(&named, &NODES, &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!(nodes.iter().map(|m| m.nodes).collect::<Vec<_>>(), [2, 8]);
    }
}
