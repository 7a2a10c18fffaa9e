//! Which pairs may run at all: what exists, what the machine allows, what the user has fixed.

use dynamiccl_spec::overrides::AllowList;
use dynamiccl_spec::{Algorithm, Collective, Overrides, Pair, Protocol};

use super::constants::{COLLNET_ARITY, NVLS_ARITY};
use super::graph::PathType;
use super::shape::Shape;

impl Shape {
    /// Whether the machine and the user let this pair run.
    pub fn enables(&self, collective: Collective, pair: Pair, nvswitch: bool, overrides: &Overrides) -> bool {
        self.ranks > 1
            && pair.exists_for(collective)
            && self.enables_algorithm(collective, pair.algorithm, nvswitch, overrides)
            && self.enables_protocol(collective, pair, overrides)
    }

    fn enables_algorithm(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        nvswitch: bool,
        overrides: &Overrides,
    ) -> bool {
        let allowed =
            overrides.algorithms.as_ref().is_none_or(|list| list.allows(collective, algorithm.id()));
        let collnet = self.collnet && self.ranks_per_node <= COLLNET_ARITY;
        allowed
            && match algorithm {
                Algorithm::Ring | Algorithm::Tree => true,
                Algorithm::Pat => self.enables_pat(overrides),
                Algorithm::CollnetChain => collnet,
                Algorithm::CollnetDirect => collnet && nvswitch && self.has_head_per_rank(collective),
                Algorithm::NvlsTree => self.nvls && self.nodes > 1,
                Algorithm::Nvls => {
                    let arity = collective == Collective::AllReduce || self.ranks_per_node <= NVLS_ARITY;
                    let network = self.nodes == 1 || (self.collnet && self.has_head_per_rank(collective));
                    self.nvls && arity && network
                }
            }
    }

    /// Allgather and reducescatter through the network need one NIC for every GPU.
    fn has_head_per_rank(&self, collective: Collective) -> bool {
        let heads = if self.nvls { self.nvls_heads } else { self.collnet_heads };
        !collective.is_sharded() || self.ranks_per_node <= heads
    }

    fn enables_pat(&self, overrides: &Overrides) -> bool {
        self.sm >= 60 && overrides.pat.unwrap_or(self.ranks_per_node == 1)
    }

    fn enables_protocol(&self, collective: Collective, pair: Pair, overrides: &Overrides) -> bool {
        let mentions = |list: &&AllowList| list.mentions(collective);
        match overrides.protocols.as_ref().filter(mentions) {
            // A list replaces NCCL's own judgement of LL128 altogether.
            Some(list) => list.allows(collective, pair.protocol.id()),
            None => pair.protocol != Protocol::LL128 || self.has_ll128_path(pair.algorithm),
        }
    }

    /// LL128 needs links that keep 128 bytes together.
    fn has_ll128_path(&self, algorithm: Algorithm) -> bool {
        let graph = self.graph(algorithm);
        let farthest = if self.sm >= 90 { PathType::Pxn } else { PathType::Pxb };
        self.sm >= 70 && graph.type_inter <= farthest && graph.type_intra <= PathType::Nvb
    }
}
