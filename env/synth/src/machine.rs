//! A machine as a synthesizer sees it: every rank's GPU, every NIC, and what each link carries.
//!
//! It is made by [`crate::discover`] and knows nothing of collectives or schedules. Rates are GB/s one way,
//! times µs; a rate in GB/s is a thousand bytes per µs.

use dynamiccl_spec::fnv::Fnv;

/// Bytes per µs in a GB/s.
pub const BYTES_PER_US: f64 = 1e3;

/// Where a device hangs in its node: socket, then switch by switch. Devices with a longer common beginning
/// are nearer to each other.
pub type Place = Vec<u16>;

/// A rank's GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Its node.
    pub node: u32,
    /// Its number in the node.
    pub local: u32,
    /// Its PCIe port.
    pub place: Place,
}

/// A NIC.
#[derive(Debug, Clone, PartialEq)]
pub struct Nic {
    /// Its node.
    pub node: u32,
    /// Its number in the node.
    pub local: u32,
    /// Its PCIe port.
    pub place: Place,
    /// What it carries one way.
    pub rate: f64,
}

/// How the GPUs of a node are joined.
#[derive(Debug, Clone, PartialEq)]
pub enum Wiring {
    /// Through switches: only a GPU's port limits.
    Switched,
    /// Pair by pair: what the links between two local GPUs carry, 0 without one; row by sender.
    Pairs(Vec<Vec<f64>>),
}

/// Times and rates that belong to no single link. Those of TuCCL's testbeds are in the default.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// A hop inside a node.
    pub local_hop: f64,
    /// A hop between nodes.
    pub remote_hop: f64,
    /// What a step costs beside its hop: flag, barrier, post.
    pub step: f64,
    /// What one thread block of 512 threads moves.
    pub block: f64,
    /// What one channel gets out of a NIC: 1.5 to 12 in worlds as they are.
    pub network_channel: f64,
    /// Streaming multiprocessors of a GPU.
    pub sms: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Rates { local_hop: 0.7, remote_hop: 5.0, step: 4.0, block: 22.0, network_channel: 11.0, sms: 108 }
    }
}

/// All GPUs and NICs of the ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// The GPUs, by rank; ranks of a node follow each other.
    pub gpus: Vec<Gpu>,
    /// The NICs, by node.
    pub nics: Vec<Nic>,
    /// How GPUs of a node are joined.
    pub wiring: Wiring,
    /// What all links of a GPU to its node carry together, one way.
    pub port: f64,
    /// What a GPU's PCIe port carries one way.
    pub pcie: f64,
    /// Whether the links inside a node are PCIe, so that they share the port with the NICs' traffic.
    pub over_pcie: bool,
    /// Times and rates that belong to no single link.
    pub rates: Rates,
}

impl Machine {
    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.gpus.len()
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.gpus.last().map_or(0, |gpu| gpu.node as usize + 1)
    }

    /// The node of a rank.
    #[inline]
    pub fn node(&self, rank: u32) -> u32 {
        self.gpus[rank as usize].node
    }

    /// Whether two ranks are in one node.
    #[inline]
    pub fn together(&self, a: u32, b: u32) -> bool {
        self.node(a) == self.node(b)
    }

    /// Ranks of a node.
    pub fn ranks_of(&self, node: u32) -> impl Iterator<Item = u32> {
        let first = self.gpus.partition_point(|gpu| gpu.node < node) as u32;
        let end = self.gpus.partition_point(|gpu| gpu.node <= node) as u32;
        first..end
    }

    /// NICs of a node.
    pub fn nics_of(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.nics.len() as u32).filter(move |&nic| self.nics[nic as usize].node == node)
    }

    /// What one GPU can send another of its node; 0 where they have no link.
    pub fn local_rate(&self, from: u32, to: u32) -> f64 {
        let (a, b) = (&self.gpus[from as usize], &self.gpus[to as usize]);
        match &self.wiring {
            _ if a.node != b.node || from == to => 0.0,
            Wiring::Switched => self.port,
            Wiring::Pairs(rates) => rates[a.local as usize][b.local as usize],
        }
    }

    /// Every link inside a node.
    pub fn local_links(&self) -> Vec<(u32, u32)> {
        let mut links = Vec::new();
        for node in 0..self.nodes() as u32 {
            for from in self.ranks_of(node) {
                links.extend(
                    self.ranks_of(node).filter(|&to| self.local_rate(from, to) > 0.0).map(|to| (from, to)),
                );
            }
        }
        links
    }

    /// A fingerprint of everything that a schedule depends on: it changes when the topology does.
    pub fn fingerprint(&self) -> u64 {
        let mut fnv = Fnv::new();
        let rates = &self.rates;
        for gpu in &self.gpus {
            fnv.number(u64::from(gpu.node) << 32 | u64::from(gpu.local));
            gpu.place.iter().for_each(|&port| fnv.number(u64::from(port)));
        }
        for nic in &self.nics {
            fnv.number(u64::from(nic.node) << 32 | u64::from(nic.local));
            fnv.number(nic.rate.to_bits());
            nic.place.iter().for_each(|&port| fnv.number(u64::from(port)));
        }
        if let Wiring::Pairs(pairs) = &self.wiring {
            pairs.iter().flatten().for_each(|rate| fnv.number(rate.to_bits()));
        }
        let plain = [self.port, self.pcie, rates.local_hop, rates.remote_hop, rates.step, rates.block];
        plain.into_iter().chain([rates.network_channel]).for_each(|rate| fnv.number(rate.to_bits()));
        fnv.number(u64::from(rates.sms) << 1 | u64::from(self.over_pcie));
        fnv.value()
    }
}
