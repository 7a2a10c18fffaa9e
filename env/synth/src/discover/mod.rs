//! Where machines come from: a cluster file, NCCL's own topology dump, or the PCI tree of a running node.
//!
//! All three end as the inside of one node ([`Topology`]), which is laid out as many times as there are
//! nodes. What really moves over a link is the cluster's to say; a dump only knows NCCL's own numbers.

mod layout;
pub mod sysfs;
mod walk;

use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_env::cluster::{Cluster, Inter, InterLink, IntraLink};

use crate::error::SynthError;
use crate::machine::{Gpu, Machine, Nic, Rates, Wiring};
use walk::Found;

/// What a ×16 port really moves, relative to NCCL's number for it: 12.8 of 12 GB/s for PCIe 3.
const PCIE_SHARE: f64 = 12.8 / 12.0;

impl Machine {
    /// This many nodes of a cluster, of each of which the first GPUs take part.
    pub fn from_cluster(cluster: &Cluster, nodes: u32, ranks_per_node: u32) -> Result<Machine, SynthError> {
        Machine::from_topology(cluster, &layout::node(cluster), nodes, ranks_per_node)
    }

    /// Nodes with this inside; the cluster says what their links move.
    pub fn from_topology(
        cluster: &Cluster,
        topology: &Topology,
        nodes: u32,
        ranks_per_node: u32,
    ) -> Result<Machine, SynthError> {
        let found = Found::new(topology);
        check(cluster, &found, nodes, ranks_per_node)?;
        let gpus = &found.gpus[..ranks_per_node as usize];
        let over_pcie = cluster.intra.link != IntraLink::Nvlink;
        let port = cluster.intra.bandwidth * cluster.calibration.intra_bandwidth;
        let pairs = !over_pcie && !topology.nvswitch();
        let wiring =
            if pairs { Wiring::Pairs(found.pairs(topology, ranks_per_node, port)) } else { Wiring::Switched };
        let nic_share = nic_share(cluster, &found);
        let mut machine = Machine {
            name: format!("{} x{nodes}", cluster.name),
            gpus: Vec::with_capacity((nodes * ranks_per_node) as usize),
            nics: Vec::new(),
            wiring,
            port,
            pcie: f64::from(topology.pcie()) * PCIE_SHARE,
            over_pcie,
            rates: rates(cluster),
        };
        for node in 0..nodes {
            let gpu =
                |(local, place): (usize, &_)| Gpu { node, local: local as u32, place: Clone::clone(place) };
            machine.gpus.extend(gpus.iter().enumerate().map(gpu));
            let nic = |(local, (place, rate)): (usize, &(_, f64))| Nic {
                node,
                local: local as u32,
                place: Clone::clone(place),
                rate: rate * nic_share,
            };
            machine.nics.extend(found.nics.iter().enumerate().map(nic));
        }
        Ok(machine)
    }
}

fn check(cluster: &Cluster, found: &Found, nodes: u32, ranks_per_node: u32) -> Result<(), SynthError> {
    let refuse = |what: String, remedy: String| {
        Err(SynthError::Machine { machine: cluster.name.clone(), what, remedy })
    };
    let gpus = found.gpus.len();
    if !(1..=gpus as u32).contains(&ranks_per_node) {
        return refuse(
            format!("{ranks_per_node} ranks per node"),
            format!("a node has {gpus} GPUs, give 1 to {gpus}"),
        );
    }
    if cluster.ranks(nodes, ranks_per_node)? < 2 {
        return refuse(
            format!("{nodes} nodes"),
            "give at least 2 ranks, one has nobody to talk to".to_owned(),
        );
    }
    if nodes > 1 && found.nics.is_empty() {
        return refuse(format!("{nodes} nodes"), "a node has no NIC, give 1 node".to_owned());
    }
    Ok(())
}

/// What NICs really move, relative to their own word.
fn nic_share(cluster: &Cluster, found: &Found) -> f64 {
    let nominal: f64 = found.nics.iter().map(|(_, rate)| rate).sum();
    let real = cluster.inter.as_ref().map_or(nominal, |inter| inter.bandwidth);
    real * cluster.calibration.inter_bandwidth / nominal.max(f64::MIN_POSITIVE)
}

/// Rates by GPU and network. Thread blocks: TuCCL's testbeds for V100 and A100, NCCL's per-channel rates
/// for newer ones; hops and channels of other networks than RDMA are assumed.
fn rates(cluster: &Cluster) -> Rates {
    let block = match cluster.gpu.sm {
        100.. => 40.0,
        90..100 => 36.7,
        80..90 => 22.0,
        _ => 20.0,
    };
    let (hop, channel) = cluster.inter.as_ref().map_or((5.0, 11.0), network);
    Rates {
        remote_hop: hop * cluster.calibration.inter_latency,
        local_hop: 0.7 * cluster.calibration.intra_latency,
        block: block * cluster.calibration.channel_rate,
        network_channel: channel * cluster.calibration.channel_rate,
        sms: cluster.gpu.sms,
        ..Rates::default()
    }
}

/// µs of a hop between nodes, and GB/s of one channel.
fn network(inter: &Inter) -> (f64, f64) {
    let (hop, channel) = match inter.link {
        InterLink::Infiniband | InterLink::Roce => (5.0, 11.0),
        InterLink::Slingshot => (8.0, 11.0),
        InterLink::Efa | InterLink::Tcpx => (15.0, 6.0),
        InterLink::Tcp => (25.0, 2.5),
        InterLink::TcpLoopback | InterLink::TcpVeth => (15.0, 2.5),
    };
    (inter.hop.map_or(hop, |hop| hop[2]) + inter.propagation, channel)
}
