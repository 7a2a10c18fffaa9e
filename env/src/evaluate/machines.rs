//! Where tuners are judged: every cluster on a few node counts, and which of them are held out.

use std::sync::Arc;

use crate::cluster::{Cluster, ClusterError};

/// Clusters that no curriculum contains, reported apart.
pub const HELD_OUT: [&str; 6] =
    ["dgx2_v100", "aws_p5en", "hgx_b200", "ib400g_1gpu", "a100_8_tcp100g", "tcp10g_1gpu"];
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
}

impl Machine {
    /// A cluster on this many nodes; none where NCCL could make no communicator there.
    pub fn new(cluster: &Arc<Cluster>, nodes: u32) -> Option<Self> {
        let held_out = HELD_OUT.contains(&cluster.name.as_str());
        cluster.hosts(nodes, cluster.gpus_per_node).then(|| Machine {
            cluster: Arc::clone(cluster),
            nodes,
            tier: cluster.tier(nodes),
            held_out,
        })
    }

    /// These clusters (all that come with the program where none is named) on these node counts, as far as
    /// they are of these tiers.
    pub fn list(clusters: &[String], nodes: &[u32], tiers: &[u8]) -> Result<Vec<Machine>, ClusterError> {
        let clusters: Vec<_> = match clusters {
            [] => Cluster::names().map(Cluster::load).collect::<Result<_, _>>()?,
            named => named.iter().map(|name| Cluster::load(name)).collect::<Result<_, _>>()?,
        };
        let clusters: Vec<_> = clusters.into_iter().map(Arc::new).collect();
        let machines = clusters.iter().flat_map(|c| nodes.iter().filter_map(|&nodes| Machine::new(c, nodes)));
        Ok(machines.filter(|machine| tiers.contains(&machine.tier)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curriculum::Curriculum;

    #[test]
    fn every_tier_has_machines_and_what_is_held_out_is_in_no_curriculum() {
        let machines = Machine::list(&[], &NODES, &[1, 2, 3, 4]).unwrap();
        assert!((1..=4).all(|tier| machines.iter().any(|m| m.tier == tier && !m.held_out)));
        let held_out: std::collections::BTreeSet<_> =
            machines.iter().filter(|m| m.held_out).map(|m| m.cluster.name.as_str()).collect();
        assert_eq!(held_out, HELD_OUT.into_iter().collect());
        for stage in Curriculum::load("full").unwrap().stages {
            assert!(stage.clusters.iter().all(|c| !HELD_OUT.contains(&c.name.as_str())), "{}", stage.name);
        }
    }

    #[test]
    fn a_cluster_without_graphs_for_one_node_starts_at_two() {
        let named = ["ib100g_1gpu".to_owned()];
        let nodes = Machine::list(&named, &NODES, &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!(nodes.iter().map(|m| m.nodes).collect::<Vec<_>>(), [2, 8]);
    }
}
