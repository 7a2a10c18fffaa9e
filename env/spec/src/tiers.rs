//! How far apart the ranks of a communicator are, in tiers.
//!
//! A cluster, or a deployment, says from which node count on a communicator is of which tier. Read the other
//! way round, the same list says how nodes group: where tier 3 starts at 5 nodes, four nodes share a rack.
//! Training and the plugin both tell a policy so, and must mean the same.

use crate::context::{NodeLink, TIERS};

/// From so many nodes on, a communicator is of this tier.
pub type Step = (u32, u8);

/// The tier of a communicator of this many nodes: that of its most distant ranks. Steps ascend.
pub fn tier(steps: impl DoubleEndedIterator<Item = Step> + Clone, nodes: u32) -> Option<u8> {
    let reached = steps.clone().rev().find(|&(from, _)| from <= nodes);
    reached.or(steps.clone().next()).map(|(_, tier)| tier)
}

/// The tier of two ranks in one node: what the list says of one node, or else what their link is; none where nobody says.
pub fn inside(mut steps: impl Iterator<Item = Step>, link: NodeLink) -> Option<u8> {
    match (steps.next(), link) {
        (Some((..=1, tier)), _) => Some(tier),
        (_, NodeLink::Unknown) => None,
        (_, NodeLink::None) => Some(0),
        (_, NodeLink::Nvlink) => Some(1),
        (_, NodeLink::Pcie | NodeLink::Shm) => Some(2),
    }
}

/// The share of rank pairs at each tier, where two ranks of one node are of tier `inside`. Nodes fill one
/// group after the other.
pub fn mix(
    steps: impl Iterator<Item = Step> + Clone,
    inside: u8,
    nodes: u32,
    ranks_per_node: u32,
) -> [f64; TIERS] {
    let (nodes, ranks) = (f64::from(nodes.max(1)), f64::from(ranks_per_node.max(1)));
    let mut mix = [0.0; TIERS];
    mix[usize::from(inside)] = nodes * pairs(ranks);
    let mut nearer = 0.0;
    for (index, (_, tier)) in steps.clone().enumerate() {
        let next = steps.clone().nth(index + 1);
        let within = pairs_within(nodes, next.map_or(f64::INFINITY, |(from, _)| f64::from(from) - 1.0));
        mix[usize::from(tier)] += (within - nearer) * ranks * ranks;
        nearer = within;
    }
    let all = mix.iter().sum::<f64>();
    if all == 0.0 {
        mix[usize::from(inside)] = 1.0;
        return mix;
    }
    mix.map(|share| share / all)
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

    const STEPS: [Step; 3] = [(1, 1), (2, 2), (5, 3)];

    #[test]
    fn the_tier_is_that_of_the_most_distant_ranks() {
        let tiers = [1, 2, 4, 5, 1000].map(|nodes| tier(STEPS.into_iter(), nodes));
        assert_eq!(tiers, [1, 2, 2, 3, 3].map(Some));
        assert_eq!(tier([].into_iter(), 3), None);
    }

    #[test]
    fn ranks_in_one_node_are_as_near_as_the_list_or_their_link_says() {
        let links = [NodeLink::Unknown, NodeLink::None, NodeLink::Nvlink, NodeLink::Pcie, NodeLink::Shm];
        assert_eq!(links.map(|link| inside([(1, 3), (2, 4)].into_iter(), link)), [Some(3); 5]);
        let by_link = [None, Some(0), Some(1), Some(2), Some(2)];
        assert_eq!(links.map(|link| inside([(2, 4)].into_iter(), link)), by_link);
        assert_eq!(links.map(|link| inside([].into_iter(), link)), by_link);
    }

    #[test]
    fn the_mix_counts_pairs_by_hand() {
        assert_eq!(mix(STEPS.into_iter(), 1, 1, 8), [0.0, 1.0, 0.0, 0.0, 0.0]);
        // Five nodes of 8: four share a rack, the fifth stands alone.
        let mix = mix(STEPS.into_iter(), 1, 5, 8);
        let shares = [0.0, 5.0 * 28.0, 6.0 * 64.0, 4.0 * 64.0, 0.0].map(|pairs| pairs / 780.0);
        assert!(mix.iter().zip(shares).all(|(got, share)| (got - share).abs() < 1e-12), "{mix:?}");
    }
}
