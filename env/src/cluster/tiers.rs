//! How far apart the ranks of a communicator are, in tiers.
//!
//! A cluster file says from which node count on a communicator is of which tier; what follows from that
//! is the same for a deployment's file and stands in `dynamiccl_spec::tiers`.

use dynamiccl_spec::tiers::{self, Step};

use super::{Cluster, ClusterError, TierFrom};

/// Number of tiers, 0 to 4.
pub use dynamiccl_spec::context::TIERS;

/// What stands between the name of a cluster and the tier that it was moved to.
const MOVED: &str = "_at_tier";

impl Cluster {
    /// The tier of a communicator of this many full nodes: that of its most distant ranks.
    pub fn tier(&self, nodes: u32) -> u8 {
        tiers::tier(self.tier_steps(), nodes).unwrap_or(0)
    }

    /// The share of rank pairs at each tier, for a communicator of this many nodes with so many ranks each. Nodes fill one
    /// group after the other.
    pub fn tier_mix(&self, nodes: u32, ranks_per_node: u32) -> [f64; TIERS] {
        let inside = tiers::inside(self.tier_steps(), self.intra.link.into()).unwrap_or(0);
        tiers::mix(self.tier_steps(), inside, nodes, ranks_per_node)
    }

    /// The same cluster with its nodes as far apart as the generic cluster of a tier, 2 to 4, has them: that tier,
    /// and that latency between any two. NCCL predicts and decides as before.
    pub fn moved_to(mut self, tier: u8) -> Result<Cluster, ClusterError> {
        let hop = Cluster::load(&format!("tier{tier}"))?.inter.and_then(|inter| inter.hop);
        if let Some(inter) = &mut self.inter {
            inter.hop = hop;
        }
        self.tiers.retain(|from| from.nodes <= 1);
        self.tiers.push(TierFrom { nodes: 2, tier, hop_latency: 0.0, bandwidth_share: 1.0 });
        self.name = format!("{}{MOVED}{tier}", self.name);
        Ok(self)
    }

    /// A cluster by name or file, moved where a tier is given.
    pub fn load_at(name_or_path: &str, tier: Option<u8>) -> Result<Cluster, ClusterError> {
        let cluster = Cluster::load(name_or_path)?;
        match tier {
            Some(tier) => cluster.moved_to(tier),
            None => Ok(cluster),
        }
    }

    /// What the cluster was called before it was moved, and to which tier it was.
    pub fn moved_from(&self) -> (&str, Option<u8>) {
        let moved = self.name.rsplit_once(MOVED).and_then(|(name, tier)| Some((name, tier.parse().ok()?)));
        moved.map_or((&self.name, None), |(name, tier)| (name, Some(tier)))
    }

    fn tier_steps(&self) -> impl DoubleEndedIterator<Item = Step> + Clone + '_ {
        self.tiers.iter().map(|from| (from.nodes, from.tier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_is_that_of_the_most_distant_ranks() {
        let cluster = Cluster::load("dgx_h100").unwrap();
        assert_eq!([1, 2, 4, 5, 1000].map(|nodes| cluster.tier(nodes)), [1, 2, 2, 3, 3]);
        let tcp = Cluster::load("tcp10g_1gpu").unwrap();
        assert_eq!([1, 2, 64].map(|nodes| tcp.tier(nodes)), [4, 4, 4]);
    }

    #[test]
    fn the_mix_counts_pairs_by_hand() {
        let cluster = Cluster::load("dgx_h100").unwrap();
        assert_eq!(cluster.tier_mix(1, 8), [0.0, 1.0, 0.0, 0.0, 0.0]);

        // Two nodes of 8: 56 pairs inside, 64 across.
        let mix = cluster.tier_mix(2, 8);
        assert!((mix[1] - 56.0 / 120.0).abs() < 1e-12 && (mix[2] - 64.0 / 120.0).abs() < 1e-12);

        // Five nodes: four share a rack, the fifth stands alone.
        let mix = cluster.tier_mix(5, 8);
        let all = 40.0 * 39.0 / 2.0;
        assert!((mix[1] - 5.0 * 28.0 / all).abs() < 1e-12);
        assert!((mix[2] - 6.0 * 64.0 / all).abs() < 1e-12);
        assert!((mix[3] - 4.0 * 64.0 / all).abs() < 1e-12);
    }

    #[test]
    fn shares_add_up_and_none_is_negative() {
        for name in Cluster::names() {
            let cluster = Cluster::load(name).unwrap();
            for nodes in [1, 2, 3, 4, 5, 7, 16, 33, 1000, 100_000] {
                let mix = cluster.tier_mix(nodes, cluster.gpus_per_node);
                assert!((mix.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name} {nodes}: {mix:?}");
                assert!(mix.iter().all(|share| (0.0..=1.0).contains(share)), "{name} {nodes}: {mix:?}");
            }
        }
    }

    #[test]
    fn one_rank_per_node_has_no_pair_inside() {
        let mix = Cluster::load("dgx_h100").unwrap().tier_mix(4, 1);
        assert_eq!(mix, [0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_cluster_that_is_moved_keeps_its_nodes_and_takes_the_latency_of_the_tier() {
        let near = Cluster::load("dgx_h100").unwrap();
        let far = near.clone().moved_to(4).unwrap();
        assert_eq!([1, 2, 8].map(|nodes| far.tier(nodes)), [1, 4, 4]);
        let hop = |cluster: &Cluster| cluster.inter.as_ref().unwrap().hop;
        assert_eq!(hop(&far), hop(&Cluster::load("tier4").unwrap()));
        assert_eq!((&far.graphs, &far.intra), (&near.graphs, &near.intra));
        assert_eq!(far.tier_mix(1, 8), near.tier_mix(1, 8));
        assert_eq!(far.name, "dgx_h100_at_tier4");
    }
}
