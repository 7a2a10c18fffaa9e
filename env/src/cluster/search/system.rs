//! A topology as a graph of devices and links, with the bandwidth that is left on each link.

use crate::cluster::{CpuArch, CpuVendor};

/// GB/s of a link that is no limit.
pub(super) const LOCAL: f32 = 5000.0;

/// What a link is made of; the order is that of the path types it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    Local,
    NvLink,
    Chip,
    Pci,
    Sockets,
    Network,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) to: usize,
    pub(super) kind: LinkKind,
    /// GB/s not yet taken by a channel.
    pub(super) left: f32,
}

impl Link {
    /// Takes bandwidth, or gives it back; rounded, as NCCL does, so that giving back is exact.
    pub(super) fn take(&mut self, rate: f32) {
        self.left = ((self.left - rate) * 1000.0).round() / 1000.0;
    }
}

/// What a device is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Gpu { sm: u32, dev: u32, gdr: bool, host: u32 },
    Pci,
    NvSwitch,
    Cpu { arch: CpuArch, vendor: CpuVendor },
    Nic,
    Net(NetFacts),
}

/// What the search needs to know of a network device.
#[derive(Debug, Clone)]
pub(super) struct NetFacts {
    /// Host and number of the device there.
    pub(super) id: (u32, u32),
    /// GB/s not yet taken by a channel.
    pub(super) left: f32,
    pub(super) latency: f32,
    pub(super) port: i64,
    pub(super) guid: u64,
    pub(super) gdr: bool,
    pub(super) collnet: bool,
}

/// A device and its links, fast ones first.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) links: Vec<Link>,
}

/// Every device of a node. GPUs, NICs, CPUs and the NVSwitch are also listed apart, in NCCL's order.
#[derive(Debug, Clone, Default)]
pub(super) struct System {
    pub(super) nodes: Vec<Node>,
    pub(super) gpus: Vec<usize>,
    pub(super) nets: Vec<usize>,
    pub(super) cpus: Vec<usize>,
    pub(super) nvswitch: Option<usize>,
    pub(super) hosts: usize,
    pub(super) no_peer_to_peer: bool,
}

impl System {
    /// The lowest compute capability.
    pub(super) fn sm(&self) -> u32 {
        self.gpus.iter().map(|&gpu| self.sm_of(gpu)).min().unwrap_or(0)
    }

    /// The compute capability of a GPU, 0 of anything else.
    pub(super) fn sm_of(&self, node: usize) -> u32 {
        if let Kind::Gpu { sm, .. } = self.nodes[node].kind { sm } else { 0 }
    }

    /// The number of a GPU on its host.
    pub(super) fn dev_of(&self, gpu: usize) -> usize {
        if let Kind::Gpu { dev, .. } = self.nodes[gpu].kind { dev as usize } else { 0 }
    }

    /// What is known of a network device.
    pub(super) fn net(&self, node: usize) -> Option<&NetFacts> {
        if let Kind::Net(facts) = &self.nodes[node].kind { Some(facts) } else { None }
    }

    /// The vendor and architecture of the first CPU, which NCCL takes for all.
    pub(super) fn cpu(&self) -> Option<(CpuArch, CpuVendor)> {
        match self.nodes[*self.cpus.first()?].kind {
            Kind::Cpu { arch, vendor } => Some((arch, vendor)),
            _ => None,
        }
    }

    /// The link that leads back over `nodes[from].links[link]`.
    pub(super) fn reverse(&self, from: usize, link: usize) -> Option<(usize, usize)> {
        let Link { to, kind, .. } = self.nodes[from].links[link];
        let back = self.nodes[to].links.iter().position(|l| l.to == from && l.kind == kind)?;
        Some((to, back))
    }

    pub(super) fn add(&mut self, kind: Kind) -> usize {
        self.nodes.push(Node { kind, links: Vec::new() });
        self.nodes.len() - 1
    }

    /// Adds bandwidth from one node to another, and keeps the fastest links first.
    pub(super) fn connect(&mut self, from: usize, to: usize, kind: LinkKind, rate: f32) {
        let links = &mut self.nodes[from].links;
        let known = links.iter().position(|l| l.to == to && l.kind == kind);
        let mut at = known.unwrap_or_else(|| {
            links.push(Link { to, kind, left: 0.0 });
            links.len() - 1
        });
        links[at].left += rate;
        while at > 0 && links[at - 1].left < links[at].left {
            links.swap(at - 1, at);
            at -= 1;
        }
    }

    pub(super) fn connect_both(&mut self, a: usize, b: usize, kind: LinkKind, rate: f32) {
        self.connect(a, b, kind, rate);
        self.connect(b, a, kind, rate);
    }
}
