//! From a table's metadata, written for people, to the nearest cluster we can describe.
//!
//! The metadata names a GPU, counts nodes and GPUs, and says in words what connects them. The rest is
//! what such machines usually have, and NCCL's own search finds the graphs. Nothing is read from the
//! measured times.

mod network;
mod products;

use std::collections::HashMap;

use dynamiccl_spec::TopologyClass;

use crate::cluster::hardware::{Hardware, NvFabric};
use crate::cluster::search::Span;
use crate::cluster::{
    Calibration, Cluster, CommOptions, CpuArch, CpuVendor, Gpu, GraphSet, Host, Inter, InterLink, Intra,
    IntraLink, TierFrom,
};
use crate::measure::tables::Table;
use crate::nccl::graph::{Graphs, PathType};
use crate::nccl::{Communicator, Version};
use crate::swept::{Release, VERSION};
use network::Network;
use products::Product;

/// GPUs of a rack-wide NVLink domain, which is one node to NCCL.
const RACK: u32 = 72;
/// What of a nominal rate RDMA and kernel sockets reach.
const RDMA_SHARE: f64 = 0.94;
const SOCKET_SHARE: f64 = 0.9;

/// Describes tables; the graphs of a kind of node are searched once.
#[derive(Debug, Default)]
pub struct Describer {
    searched: HashMap<String, Option<Graphs>>,
}

/// The counts of a communicator.
#[derive(Debug, Clone, Copy)]
struct Counts {
    nodes: u32,
    gpus: u32,
    /// Hosts of one node: more than one where NVLink spans a rack.
    hosts: u32,
}

impl Describer {
    /// The cluster and communicator of a table, or why there is none.
    pub fn describe(&mut self, table: &Table) -> Result<(Cluster, Communicator), String> {
        let counts = counts(table)?;
        let product = products::of(&table.gpu);
        let network =
            (counts.nodes > 1).then(|| network::of(&table.inter, &table.inter_gbps, &product, counts.gpus));
        let hardware = hardware(table, &product, counts, network.as_ref());
        let span = if counts.nodes > 1 { Span::Several } else { Span::One };
        let graphs =
            *self.searched.entry(format!("{hardware:?} {span:?}")).or_insert_with(|| hardware.graphs(span));
        let graphs = graphs.ok_or("NCCL's search finds no graph on such a machine")?;
        let cluster = cluster(table, &product, counts, &hardware, network, graphs);
        let options = CommOptions { version: version(&table.nccl_version)?, ..CommOptions::default() };
        let communicator = cluster.communicator(counts.nodes, &options).map_err(|error| error.to_string())?;
        Ok((cluster, communicator))
    }
}

fn counts(table: &Table) -> Result<Counts, String> {
    let nodes = table.nodes.ok_or("the number of nodes is not stated")?;
    let gpus = table.gpus_per_node.ok_or("the GPUs per node are not stated")?;
    if nodes.saturating_mul(gpus) < 2 {
        return Err("a single rank has nobody to talk to".to_owned());
    }
    if !table.intra.to_lowercase().contains("nvl72") || nodes == 1 {
        return Ok(Counts { nodes, gpus, hosts: 1 });
    }
    let hosts = (RACK / gpus.max(1)).clamp(1, nodes);
    if !nodes.is_multiple_of(hosts) {
        return Err("the last rack is only partly filled".to_owned());
    }
    Ok(Counts { nodes: nodes / hosts, gpus: gpus * hosts, hosts })
}

/// The release whose choices are reproduced for the one that a table states, if it states one.
fn version(stated: &str) -> Result<Version, String> {
    if stated.is_empty() {
        return Ok(VERSION);
    }
    let release = Release::of(stated).ok_or_else(|| format!("\"{stated}\" is no release of NCCL"))?;
    Ok(release.version)
}

/// How NVLink joins the GPUs, as far as the words of a table say.
fn fabric(words: &str, product: &Product, gpus: u32) -> NvFabric {
    let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
    let Some(nvlink) = product.nvlink else {
        return if has(&["nvlink pairs"]) { NvFabric::Pairs } else { NvFabric::None };
    };
    match nvlink.fabric {
        _ if gpus < 2 || words.starts_with("pcie") => NvFabric::None,
        _ if has(&["nvswitch", "nvl72"]) => NvFabric::Switch,
        _ if has(&["bridge"]) => NvFabric::Pairs,
        _ if has(&["4-gpu", "4x ", "quad"]) && gpus <= 4 => NvFabric::Mesh,
        NvFabric::CubeMesh if gpus != 8 => NvFabric::Mesh,
        usual => usual,
    }
}

fn hardware(table: &Table, product: &Product, counts: Counts, network: Option<&Network>) -> Hardware {
    let words = table.intra.to_lowercase();
    let base = Hardware::new(product.sm, counts.gpus / counts.hosts);
    let links = product.nvlink.map_or(4, |nvlink| nvlink.links);
    let nvlink = fabric(&words, product, counts.gpus);
    let amd = product.sm == 80;
    let base = Hardware {
        hosts: counts.hosts,
        nvlink,
        nvlink_rate: if nvlink == NvFabric::None { 0.0 } else { base.clone().on_nvswitch(links).nvlink_rate },
        cpu: if product.grace {
            CpuVendor::Other
        } else if amd {
            CpuVendor::Amd
        } else {
            CpuVendor::Intel
        },
        arch: if product.grace { CpuArch::Arm } else { CpuArch::X86 },
        peer_to_peer: !without_peer_to_peer(&words),
        ..base
    };
    let base = if product.grace { on_grace(base) } else { base };
    let Some(network) = network else { return base };
    let each = network.gbits / f64::from(network.nics.max(1));
    let wired = base.with_nics(network.nics.div_ceil(counts.hosts).max(1) as usize, each as f32);
    let path = if product.grace { PathType::P2c } else { network.path };
    let wired = Hardware { nic_path: path, latency: network.declared, ..wired };
    if network.link == InterLink::Tcp { wired.over_tcp() } else { wired }
}

/// GPUs beside Grace sit on chip-to-chip links: one a CPU in the Hopper generation, two in Blackwell's.
fn on_grace(base: Hardware) -> Hardware {
    let hopper = base.sm < 100;
    let (each, c2c) = if hopper { (1, 447.12) } else { (2, 625.968) };
    Hardware { gpus_per_switch: 0, sockets: base.gpus.div_ceil(each), c2c, ..base }
}

fn without_peer_to_peer(words: &str) -> bool {
    ["shm", "no p2p", "p2p unavailable"].iter().any(|word| words.contains(word))
}

fn intra(hardware: &Hardware, product: &Product, gpus: u32) -> Intra {
    let (link, bandwidth) = match hardware.nvlink {
        _ if gpus < 2 => (IntraLink::None, 1000.0),
        NvFabric::None if !hardware.peer_to_peer => (IntraLink::Shm, 0.8 * product.pcie),
        NvFabric::None => (IntraLink::Pcie, product.pcie),
        // Two of four GPUs still meet over PCIe or host memory, which is what a ring is held to.
        NvFabric::Pairs if gpus > 2 => (IntraLink::Pcie, product.pcie),
        _ => (IntraLink::Nvlink, product.nvlink.map_or(100.0, |nvlink| nvlink.bandwidth)),
    };
    let nvswitch = hardware.nvlink == NvFabric::Switch;
    Intra { link, generation: 0, nvswitch, bandwidth, source: "usual for the GPU the table names".to_owned() }
}

fn cluster(
    table: &Table,
    product: &Product,
    counts: Counts,
    hardware: &Hardware,
    network: Option<Network>,
    graphs: Graphs,
) -> Cluster {
    let source = || "the table's own words".to_owned();
    let inter = network.map(|n| {
        let nics = n.nics.max(1);
        let share = if n.link == InterLink::Tcp { SOCKET_SHARE } else { RDMA_SHARE };
        Inter {
            link: n.link,
            class: TopologyClass::FatTree,
            nics,
            nic_rate: n.gbits / 8.0 / f64::from(nics),
            bandwidth: n.gbits / 8.0 * share,
            shaped: false,
            rings_only: false,
            propagation: 0.0,
            hop: None,
            source: source(),
        }
    });
    let several = counts.nodes > 1;
    Cluster {
        name: table.id.clone(),
        description: format!("{} x {} {}", counts.nodes, counts.gpus, table.gpu),
        gpus_per_node: counts.gpus,
        tiers: vec![TierFrom { nodes: 1, tier: 2, hop_latency: 0.0, bandwidth_share: 1.0 }],
        gpu: Gpu { name: table.gpu.clone(), sm: product.sm, sms: product.sms, source: source() },
        host: Host { cpu: hardware.cpu, arch: hardware.arch, source: source() },
        intra: intra(hardware, product, counts.gpus),
        inter,
        graphs: GraphSet {
            source: "NCCL's search on a machine described by the table's words".to_owned(),
            single: (!several).then_some(graphs),
            multi: several.then_some(graphs),
            part: Vec::new(),
        },
        calibration: Calibration::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_that_are_partly_filled_are_not_described() {
        let of = |nodes: u32| {
            let table = Table { nodes: Some(nodes), ..table() };
            counts(&table).map(|counts| (counts.nodes, counts.gpus))
        };
        assert_eq!([1, 4, 18, 36].map(of), [Ok((1, 4)), Ok((1, 16)), Ok((1, 72)), Ok((2, 72))]);
        assert!(of(19).is_err_and(|why| why.contains("partly")));
    }

    #[test]
    fn a_table_has_the_release_that_it_states() {
        let of = |stated: &str| version(stated).ok();
        assert_eq!(["", "2.18", "2.28.9"].map(of), [Some(Version::V2_28); 3]);
        assert_eq!([of("2.29.7"), of("2.31.2")], [Some(Version::V2_29), Some(Version::V2_30)]);
        assert_eq!(version("v2"), Err("\"v2\" is no release of NCCL".to_owned()));
    }

    fn table() -> Table {
        let word = String::new;
        Table {
            id: word(),
            source_url: word(),
            gpu: "GB200".to_owned(),
            nodes: None,
            gpus_per_node: Some(4),
            intra: "NVL72".to_owned(),
            inter: word(),
            inter_gbps: word(),
            nccl_version: word(),
            notes: word(),
            health: Default::default(),
            dtype: None,
            rows: Vec::new(),
            left_out: 0,
        }
    }
}
