//! How a network that is no fat tree carries rings, trees and all-to-all traffic.
//!
//! A class only changes what its links do to a pattern: how far neighbours and edges are, and what of a
//! node's bandwidth is left when flows share links. NCCL's own decision knows nothing of it.

use dynamiccl_spec::{Algorithm, TopologyClass};

use crate::model::constants::{Wiring, Wirings};
use crate::model::fabric::Fabric;

impl Wirings {
    /// The class's wiring; nothing where it is neutral or unknown.
    pub fn of(&self, class: TopologyClass) -> Option<&Wiring> {
        match class {
            TopologyClass::Unknown | TopologyClass::FatTree => None,
            TopologyClass::BCube => Some(&self.bcube),
            TopologyClass::Jellyfish => Some(&self.jellyfish),
            TopologyClass::Torus => Some(&self.torus),
            TopologyClass::HammingMesh => Some(&self.hammingmesh),
            TopologyClass::SipOcs => Some(&self.sip_ocs),
            TopologyClass::TopoOpt => Some(&self.topoopt),
            TopologyClass::Mixed => Some(&self.mixed),
        }
    }
}

/// What the wiring leaves of a hop and of the bandwidth, by pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ways {
    ring_hop: f64,
    ring_share: f64,
    tree_share: f64,
}

impl Fabric {
    /// Lays the network out in this class.
    pub(super) fn wire(&mut self, wiring: &Wiring) {
        let further = wiring.tree_hops + wiring.tree_growth * self.nodes.sqrt();
        self.tree_detour += self.depth * further * wiring.hop;
        self.alltoall_share = wiring.alltoall_share.min(1.0);
        self.ways = Some(Ways {
            ring_hop: wiring.ring_hop,
            ring_share: wiring.ring_share.min(1.0),
            tree_share: wiring.tree_share.min(1.0),
        });
    }

    /// The fabric as an algorithm meets it on these ways.
    pub(super) fn along(&self, ways: &Ways, algorithm: Algorithm) -> Fabric {
        let mut fabric = *self;
        let share = match algorithm {
            Algorithm::Ring => {
                fabric.inter.alpha = self.inter.alpha.map(|us| us * ways.ring_hop);
                ways.ring_share
            }
            _ => ways.tree_share,
        };
        fabric.inter_bandwidth *= share;
        fabric.shaped_bandwidth *= share;
        fabric
    }
}
