//! Clusters from NCCL's own dumps: a whole one from a topology, or a known one with the graphs that a
//! machine really has.

use dynamiccl_spec::TopologyClass;

use super::search::{self, Span};
use super::topology::{NvTarget, Topology};
use super::{
    Calibration, Cluster, ClusterError, Gpu, GraphSet, Host, Inter, InterLink, Intra, IntraLink, TierFrom,
};
use crate::nccl::graph::Graphs;

/// The part of a NIC's rate that RDMA reaches in public nccl-tests tables.
const RDMA_SHARE: f64 = 0.94;
/// The part that kernel TCP reaches.
const TCP_SHARE: f64 = 0.93;
/// The part of NCCL's number for PCIe that peers reach.
const PCIE_SHARE: f64 = 0.85;

impl Cluster {
    /// A cluster of nodes with this topology. What a topology does not say (the GPU's name, how nodes
    /// are racked, what links really move) is filled in as usual for such machines and says so.
    pub fn from_topology(name: &str, topology: &Topology, source: &str) -> Result<Cluster, ClusterError> {
        let graphs = GraphSet {
            source: format!("NCCL 2.30.7 search on {source}"),
            single: search::graphs(topology, Span::One),
            multi: search::graphs(topology, Span::Several),
            part: Vec::new(),
        };
        let gpus = topology.gpus().len() as u32;
        let sm = topology.sm();
        let socket = topology.sockets.first().ok_or_else(|| empty(name))?;
        let cluster = Cluster {
            name: name.to_owned(),
            description: format!("{gpus} GPUs per node, as in {source}"),
            gpus_per_node: gpus,
            tiers: tiers(topology),
            gpu: Gpu {
                name: format!("sm_{sm}"),
                sm,
                sms: usual_sms(sm),
                source: format!("{source}; SMs usual for sm_{sm}"),
            },
            host: Host { cpu: socket.vendor, arch: socket.arch, source: source.to_owned() },
            intra: intra(topology, source),
            inter: inter(topology, source),
            graphs,
            calibration: Calibration::default(),
        };
        cluster.check(name)?;
        Ok(cluster)
    }

    /// Takes the graphs that NCCL dumped instead of the ones it has.
    pub fn replace_graphs(&mut self, span: Span, graphs: Graphs, source: &str) -> Result<(), ClusterError> {
        let mut changed = self.clone();
        match span {
            Span::One => changed.graphs.single = Some(graphs),
            Span::Several => changed.graphs.multi = Some(graphs),
        }
        changed.graphs.forget_parts(span);
        let which = if span == Span::One { "single" } else { "multi" };
        changed.graphs.source = format!("{}; {which}: {source}", self.graphs.source);
        changed.check(&self.name)?;
        *self = changed;
        Ok(())
    }
}

fn empty(name: &str) -> ClusterError {
    ClusterError::Value {
        file: name.to_owned(),
        key: "topology".to_owned(),
        value: "no socket".to_owned(),
        remedy: "give a topology with at least one socket and one GPU".to_owned(),
    }
}

fn on_nvlink(topology: &Topology) -> bool {
    let peer = |to: NvTarget| to != NvTarget::Cpu;
    topology.gpus().iter().any(|gpu| gpu.nvlinks.iter().any(|links| links.count > 0 && peer(links.to)))
}

fn intra(topology: &Topology, source: &str) -> Intra {
    let sm = topology.sm();
    if topology.gpus().len() == 1 {
        let source = "no link inside; a copy within the GPU moves about half of the memory rate".to_owned();
        let bandwidth = if sm >= 90 { 1600.0 } else { 750.0 };
        return Intra { link: IntraLink::None, generation: 0, nvswitch: false, bandwidth, source };
    }
    if on_nvlink(topology) {
        let generation = match sm {
            100.. => 5,
            90..100 => 4,
            80..90 => 3,
            70..80 => 2,
            _ => 1,
        };
        let bandwidth = f64::from(topology.nvlink_rate_per_gpu());
        let source = format!("{source}; NCCL's rate for the NVLinks of one GPU");
        return Intra {
            link: IntraLink::Nvlink,
            generation,
            nvswitch: topology.nvswitch(),
            bandwidth,
            source,
        };
    }
    let pcie = f64::from(topology.pcie());
    let generation = (pcie / 12.0).clamp(1.0, 64.0).log2().round() as u8 + 3;
    let link = if topology.no_peer_to_peer { IntraLink::Shm } else { IntraLink::Pcie };
    let source = format!("{source}; {PCIE_SHARE} of NCCL's rate for PCIe assumed");
    Intra { link, generation, nvswitch: false, bandwidth: PCIE_SHARE * pcie, source }
}

fn inter(topology: &Topology, source: &str) -> Option<Inter> {
    let nets = topology.nets();
    let first = nets.first()?;
    let nics = nets.len() as u32;
    let total: f64 = nets.iter().map(|net| f64::from(net.rate)).sum();
    let link = match first.name.get(..3).unwrap_or("") {
        "cxi" => InterLink::Slingshot,
        "efa" | "rdm" => InterLink::Efa,
        _ if first.gdr => InterLink::Infiniband,
        _ => InterLink::Tcp,
    };
    let share = if link == InterLink::Tcp { TCP_SHARE } else { RDMA_SHARE };
    let nic_rate = total / f64::from(nics);
    let source = format!("{source}; {share} of the nominal rate and the kind of network assumed");
    Some(Inter {
        link,
        class: TopologyClass::FatTree,
        nics,
        nic_rate,
        bandwidth: share * total,
        shaped: false,
        rings_only: false,
        propagation: 0.0,
        hop: None,
        source,
    })
}

/// The tiers usual for such a machine: four nodes to a rack, slow Ethernet far away.
fn tiers(topology: &Topology) -> Vec<TierFrom> {
    let from = |nodes, tier| TierFrom { nodes, tier, hop_latency: 0.0, bandwidth_share: 1.0 };
    let mut tiers = Vec::new();
    if topology.gpus().len() > 1 {
        tiers.push(from(1, if on_nvlink(topology) { 1 } else { 2 }));
    }
    match topology.nets().first() {
        Some(net) if net.gdr => tiers.extend([from(2, 2), from(5, 3)]),
        Some(net) => tiers.push(from(2, if net.rate > 3.2 { 3 } else { 4 })),
        None => {}
    }
    tiers
}

/// Streaming multiprocessors of the data-centre GPU of a compute capability.
fn usual_sms(sm: u32) -> u32 {
    match sm {
        121 => 48,
        120 => 188,
        100.. => 148,
        90..100 => 132,
        89 => 142,
        86 => 84,
        80..86 => 108,
        75 => 40,
        _ => 80,
    }
}
