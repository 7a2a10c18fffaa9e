//! From a cluster to NCCL's communicator on some of its nodes.

use dynamiccl_spec::Overrides;

use super::search::Span;
use super::{Cluster, ClusterError};
use crate::nccl::{CommSpec, Communicator, Version};

/// Most ranks of a job: far more than anybody has, and few enough to count with everywhere.
pub const RANKS_MAX: u32 = 1 << 20;

/// What a communicator is like besides its cluster and node count. The default uses every GPU of a
/// node, the newest NCCL and no override.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CommOptions {
    /// Ranks in each node; every GPU where not given. The graphs are those of the smallest part of a node
    /// that the cluster file has and that has room for them, else of the full node.
    pub ranks_per_node: Option<u32>,
    /// Whether in-network reduction (SHARP) is on; without a graph for it NCCL leaves it off.
    pub sharp: bool,
    /// The release of NCCL.
    pub version: Version,
    /// What the user has fixed.
    pub overrides: Overrides,
}

impl Cluster {
    /// The communicator that NCCL makes on this many nodes.
    pub fn communicator(&self, nodes: u32, options: &CommOptions) -> Result<Communicator, ClusterError> {
        Ok(Communicator::new(&self.comm_spec(nodes, options)?))
    }

    /// All ranks of so many nodes; an error where they are more than can be counted with.
    pub fn ranks(&self, nodes: u32, ranks_per_node: u32) -> Result<u32, ClusterError> {
        let ranks = nodes.checked_mul(ranks_per_node).filter(|ranks| *ranks <= RANKS_MAX);
        ranks.ok_or_else(|| ClusterError::Communicator {
            cluster: self.name.clone(),
            wanted: format!("{nodes} nodes with {ranks_per_node} ranks each"),
            remedy: format!(
                "a job has at most {RANKS_MAX} ranks, give 1 to {} nodes",
                RANKS_MAX / ranks_per_node.max(1)
            ),
        })
    }

    /// Whether NCCL could make a communicator of this many nodes with this many ranks in each.
    pub fn hosts(&self, nodes: u32, ranks_per_node: u32) -> bool {
        let span = if nodes == 1 { Span::One } else { Span::Several };
        let fits = nodes > 0 && (1..=self.gpus_per_node).contains(&ranks_per_node);
        let several = self.ranks(nodes, ranks_per_node).is_ok_and(|ranks| ranks > 1);
        fits && several && self.graphs.graphs(span, ranks_per_node).is_some()
    }

    fn comm_spec(&self, nodes: u32, options: &CommOptions) -> Result<CommSpec, ClusterError> {
        let ranks_per_node = options.ranks_per_node.unwrap_or(self.gpus_per_node);
        let refuse = |wanted: String, remedy: String| {
            Err(ClusterError::Communicator { cluster: self.name.clone(), wanted, remedy })
        };
        if !(1..=self.gpus_per_node).contains(&ranks_per_node) {
            let remedy = format!("a node has {} GPUs, give 1 to {}", self.gpus_per_node, self.gpus_per_node);
            return refuse(format!("{ranks_per_node} ranks per node"), remedy);
        }
        self.ranks(nodes, ranks_per_node)?;
        let graphs = match nodes {
            0 => return refuse("0 nodes".to_owned(), "give at least 1 node".to_owned()),
            1 if ranks_per_node == 1 => {
                return refuse(
                    "1 rank".to_owned(),
                    "give at least 2 ranks, one has nobody to talk to".to_owned(),
                );
            }
            1 => self.graphs.graphs(Span::One, ranks_per_node),
            _ => self.graphs.graphs(Span::Several, ranks_per_node),
        };
        let Some(graphs) = graphs else {
            return match nodes {
                1 => {
                    refuse("1 node".to_owned(), "it has no [graphs.single], give 2 nodes or more".to_owned())
                }
                _ => refuse(format!("{nodes} nodes"), "it has no [graphs.multi], give 1 node".to_owned()),
            };
        };
        Ok(CommSpec {
            nodes,
            ranks_per_node,
            sm: self.gpu.sm,
            cpu: self.host.cpu,
            arch: self.host.arch,
            nvswitch: self.intra.nvswitch,
            nic_gbps: self.inter.as_ref().map_or(0.0, |inter| inter.nic_rate as f32),
            graphs,
            collnet: options.sharp,
            version: options.version,
            overrides: self.permitted(nodes, &options.overrides),
        })
    }

    /// What the user has fixed, and what the network leaves of that between nodes.
    fn permitted(&self, nodes: u32, overrides: &Overrides) -> Overrides {
        let rings_only = nodes > 1 && self.inter.as_ref().is_some_and(|inter| inter.rings_only);
        if rings_only { overrides.clone().only_rings() } else { overrides.clone() }
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

    use super::*;

    #[test]
    fn the_whole_node_is_the_default() {
        let cluster = Cluster::load("dgx_h100").unwrap();
        let communicator = cluster.communicator(4, &CommOptions::default()).unwrap();
        assert_eq!((communicator.nodes(), communicator.ranks(), communicator.ranks_per_node()), (4, 32, 8));
        let nvls = Pair::new(Algorithm::Nvls, Protocol::Simple);
        assert_eq!(
            (communicator.channels(), communicator.channel_limit(nvls), communicator.nvls_heads()),
            (16, 16, 8)
        );
        assert_eq!(communicator.version(), Version::V2_30);
    }

    #[test]
    fn what_the_cluster_has_no_graphs_for_is_refused_with_a_remedy() {
        let refused = |name: &str, nodes, ranks_per_node| {
            let options = CommOptions { ranks_per_node, ..CommOptions::default() };
            Cluster::load(name).unwrap().communicator(nodes, &options).unwrap_err().to_string()
        };
        assert_eq!(
            refused("gb200_nvl72", 2, None),
            "cluster gb200_nvl72: 2 nodes: it has no [graphs.multi], give 1 node"
        );
        assert!(refused("aws_p5", 1, None).contains("give 2 nodes or more"));
        assert!(refused("dgx_h100", 0, None).contains("at least 1 node"));
        assert!(refused("dgx_h100", 2, Some(9)).contains("give 1 to 8"));
        assert!(refused("dgx_h100", 1, Some(1)).contains("at least 2 ranks"));
    }

    /// A number of ranks that does not fit its type was another number of ranks.
    #[test]
    fn more_ranks_than_can_be_counted_with_are_refused() {
        let cluster = Cluster::load("dgx_h100").unwrap();
        let communicator = |nodes| cluster.communicator(nodes, &CommOptions::default());
        assert_eq!(communicator(RANKS_MAX / 8).unwrap().ranks(), RANKS_MAX);
        for nodes in [RANKS_MAX / 8 + 1, 1 << 29, u32::MAX] {
            assert!(!cluster.hosts(nodes, 8));
            assert_eq!(
                communicator(nodes).unwrap_err().to_string(),
                format!(
                    "cluster dgx_h100: {nodes} nodes with 8 ranks each: a job has at most 1048576 ranks, give 1 to 131072 \
                     nodes"
                )
            );
        }
    }

    #[test]
    fn circuits_between_nodes_carry_rings_and_nothing_else() {
        let cluster = Cluster::load("photonic_a100").unwrap();
        let algorithms = |nodes: u32, user: &str| {
            let mut overrides = Overrides::default();
            overrides.set("NCCL_ALGO", user).unwrap();
            let options = CommOptions { overrides, ..CommOptions::default() };
            let communicator = cluster.communicator(nodes, &options).unwrap();
            let table = communicator.cost_table(Collective::AllReduce, 1 << 20, 1);
            let mut all: Vec<Algorithm> =
                Pair::all().filter(|pair| table.get(*pair).is_some()).map(|pair| pair.algorithm).collect();
            all.dedup();
            all
        };
        assert_eq!(algorithms(2, "ring,tree"), [Algorithm::Ring]);
        assert_eq!(algorithms(4, "tree"), [Algorithm::Ring], "whatever the user would have");
        assert_eq!(algorithms(1, "ring,tree"), [Algorithm::Tree, Algorithm::Ring], "NVLink has no circuits");
    }
}
