//! How far apart the ranks of a communicator are, in tiers.
//!
//! A cluster file says from which node count on a communicator is of which tier. Read the other way
//! round, the same list says how nodes group: where tier 3 starts at 5 nodes, four nodes share a rack.

use super::{Cluster, IntraLink, TierFrom};

/// Number of tiers, 0 to 4.
pub use dynamiccl_spec::context::TIERS;

impl Cluster {
    /// The tier of a communicator of this many full nodes: that of its most distant ranks.
    pub fn tier(&self, nodes: u32) -> u8 {
        let reached = self.tiers.iter().rev().find(|from| from.nodes <= nodes);
        reached.or(self.tiers.first()).map_or(0, |from| from.tier)
    }

    /// The highest tier of any communicator on this cluster.
    pub fn tier_max(&self) -> u8 {
        self.tiers.iter().map(|from| from.tier).max().unwrap_or(0)
    }

    /// The share of rank pairs at each tier, for a communicator of this many full nodes.
    pub fn tier_mix(&self, nodes: u32) -> [f64; TIERS] {
        self.tier_mix_of(nodes, self.gpus_per_node)
    }

    /// The same with only some ranks in every node. Nodes fill one group after the other.
    pub fn tier_mix_of(&self, nodes: u32, ranks_per_node: u32) -> [f64; TIERS] {
        let (nodes, ranks) = (f64::from(nodes.max(1)), f64::from(ranks_per_node.max(1)));
        let mut mix = [0.0; TIERS];
        mix[usize::from(self.node_tier())] = nodes * pairs(ranks);
        let mut nearer = 0.0;
        for (index, from) in self.tiers.iter().enumerate() {
            let group = self.tiers.get(index + 1).map_or(f64::INFINITY, |next| f64::from(next.nodes) - 1.0);
            let within = pairs_within(nodes, group);
            mix[usize::from(from.tier)] += (within - nearer) * ranks * ranks;
            nearer = within;
        }
        let all = mix.iter().sum::<f64>();
        if all == 0.0 {
            mix[usize::from(self.node_tier())] = 1.0;
            return mix;
        }
        mix.map(|share| share / all)
    }

    /// The tier of two ranks in one node.
    fn node_tier(&self) -> u8 {
        match (self.tiers.first(), self.intra.link) {
            (Some(&TierFrom { nodes: ..=1, tier, .. }), _) => tier,
            (_, IntraLink::Pcie | IntraLink::Shm) => 2,
            (_, IntraLink::Nvlink) => 1,
            (_, IntraLink::None) => 0,
        }
    }
}

/// Pairs among `n`.
fn pairs(n: f64) -> f64 {
    n * (n - 1.0) / 2.0
}

/// Pairs of nodes that share a group, when groups of this size are filled one after the other.
fn pairs_within(nodes: f64, group: f64) -> f64 {
    if nodes <= group {
        return pairs(nodes);
    }
    let full = (nodes / group).floor();
    full * pairs(group) + pairs(nodes - full * group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_is_that_of_the_most_distant_ranks() {
        let cluster = Cluster::load("dgx_h100").unwrap();
        assert_eq!([1, 2, 4, 5, 1000].map(|nodes| cluster.tier(nodes)), [1, 2, 2, 3, 3]);
        assert_eq!(cluster.tier_max(), 3);
        let tcp = Cluster::load("tcp10g_1gpu").unwrap();
        assert_eq!([1, 2, 64].map(|nodes| tcp.tier(nodes)), [4, 4, 4]);
    }

    #[test]
    fn the_mix_counts_pairs_by_hand() {
        let cluster = Cluster::load("dgx_h100").unwrap();
        assert_eq!(cluster.tier_mix(1), [0.0, 1.0, 0.0, 0.0, 0.0]);

        // Two nodes of 8: 56 pairs inside, 64 across.
        let mix = cluster.tier_mix(2);
        assert!((mix[1] - 56.0 / 120.0).abs() < 1e-12 && (mix[2] - 64.0 / 120.0).abs() < 1e-12);

        // Five nodes: four share a rack, the fifth stands alone.
        let mix = cluster.tier_mix(5);
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
                let mix = cluster.tier_mix(nodes);
                assert!((mix.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name} {nodes}: {mix:?}");
                assert!(mix.iter().all(|share| (0.0..=1.0).contains(share)), "{name} {nodes}: {mix:?}");
            }
        }
    }

    #[test]
    fn one_rank_per_node_has_no_pair_inside() {
        let mix = Cluster::load("dgx_h100").unwrap().tier_mix_of(4, 1);
        assert_eq!(mix, [0.0, 0.0, 1.0, 0.0, 0.0]);
    }
}
