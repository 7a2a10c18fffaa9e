//! Graphs of nodes of which a communicator uses a part: NCCL searches among the GPUs that take part only.
//!
//! Tensor-parallel groups inside a node and data-parallel groups with one or two ranks in each are the
//! normal case in a job. The GPUs of a part are the first ones of a node, as launchers number them.

use serde::{Deserialize, Serialize};

use super::GraphSet;
use super::search::{self, Span};
use super::topology::{Device, Switch, Topology};
use crate::nccl::graph::Graphs;

/// Ranks per node whose graphs are worth keeping.
pub const PARTS: [u32; 4] = [1, 2, 4, 8];

/// NCCL's graphs where a communicator has this many ranks in each node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphPart {
    /// Ranks in each node.
    pub ranks_per_node: u32,
    /// On one node.
    pub single: Option<Graphs>,
    /// On several nodes.
    pub multi: Option<Graphs>,
}

impl GraphPart {
    /// What NCCL finds for the first GPUs of a node.
    pub fn search(topology: &Topology, ranks_per_node: u32) -> GraphPart {
        let part = topology.first_gpus(ranks_per_node);
        GraphPart {
            ranks_per_node,
            single: search::graphs(&part, Span::One),
            multi: search::graphs(&part, Span::Several),
        }
    }

    fn of(&self, span: Span) -> Option<Graphs> {
        if span == Span::One { self.single } else { self.multi }
    }
}

impl GraphSet {
    /// The graphs for as many ranks in each node: of the smallest part that has room for them, or of the
    /// whole node.
    pub fn graphs(&self, span: Span, ranks_per_node: u32) -> Option<Graphs> {
        let whole = if span == Span::One { self.single } else { self.multi };
        let roomy = self.part.iter().filter(|part| part.ranks_per_node >= ranks_per_node);
        roomy.filter_map(|part| part.of(span)).next().or(whole)
    }

    /// Forgets the parts of one span: its graphs were replaced by those of another machine.
    pub(super) fn forget_parts(&mut self, span: Span) {
        for part in &mut self.part {
            let graphs = if span == Span::One { &mut part.single } else { &mut part.multi };
            *graphs = None;
        }
        self.part.retain(|part| part.single.is_some() || part.multi.is_some());
    }
}

impl Topology {
    /// The same node with only its first GPUs taking part; every NIC stays.
    pub fn first_gpus(&self, count: u32) -> Topology {
        let mut left = count;
        let mut topology = self.clone();
        for socket in &mut topology.sockets {
            socket.devices = keep(std::mem::take(&mut socket.devices), &mut left);
        }
        topology
    }
}

fn keep(devices: Vec<Device>, left: &mut u32) -> Vec<Device> {
    let kept = |device| match device {
        Device::Gpu(_) if *left == 0 => None,
        Device::Gpu(_) => {
            *left -= 1;
            Some(device)
        }
        Device::Switch(switch) => {
            Some(Device::Switch(Switch { devices: keep(switch.devices, left), ..switch }))
        }
        Device::Nic(_) => Some(device),
    };
    devices.into_iter().filter_map(kept).collect()
}
