//! From a table's metadata, written for people, to the nearest cluster we can describe.
//!
//! The metadata names a GPU, counts nodes and GPUs, and says in words what connects them. Everything
//! else is filled in from what such machines usually have; nothing is read from the measured times.

use dynamiccl_spec::Overrides;

use crate::cluster::{
    Calibration, Cluster, CommOptions, CpuArch, CpuVendor, Gpu, GraphSet, Host, Inter, InterLink, Intra,
    IntraLink, TierFrom,
};
use crate::measure::tables::Table;
use crate::nccl::graph::{Graph, Graphs, PathType};
use crate::nccl::{Communicator, Version};

/// What a product name implies.
#[derive(Debug, Clone, Copy)]
struct Product {
    /// A part of the name, lower case.
    pattern: &'static str,
    sm: u32,
    sms: u32,
    /// NVLink: search channels and GB/s of each inside a node, and GB/s that one GPU really moves.
    nvlink: Option<(u32, f32, f64)>,
    /// Generation of PCIe, and GB/s that one GPU really moves.
    pcie: (u8, f64),
    arm: bool,
}

const fn product(
    pattern: &'static str,
    sm: u32,
    sms: u32,
    nvlink: Option<(u32, f32, f64)>,
    pcie: (u8, f64),
    arm: bool,
) -> Product {
    Product { pattern, sm, sms, nvlink, pcie, arm }
}

/// More specific names first.
const PRODUCTS: [Product; 27] = [
    product("gb300", 103, 152, Some((16, 45.0, 700.0)), (5, 45.0), true),
    product("gb200", 100, 152, Some((16, 45.0, 700.0)), (5, 45.0), true),
    product("gb10", 121, 48, None, (5, 25.0), true),
    product("gh200", 90, 132, Some((12, 30.0, 345.0)), (5, 45.0), true),
    product("b300", 103, 148, Some((16, 45.0, 700.0)), (5, 45.0), false),
    product("b200", 100, 148, Some((16, 45.0, 700.0)), (5, 45.0), false),
    product("rtx pro 6000", 120, 188, None, (5, 40.0), false),
    product("6000d", 120, 156, None, (5, 40.0), false),
    product("h800", 90, 132, Some((8, 20.0, 163.5)), (5, 45.0), false),
    product("h20", 90, 78, Some((12, 30.0, 370.0)), (5, 45.0), false),
    product("h200", 90, 132, Some((12, 30.0, 370.0)), (5, 45.0), false),
    product("h100 pcie", 90, 114, Some((6, 20.0, 120.0)), (5, 45.0), false),
    product("h100", 90, 132, Some((12, 30.0, 370.0)), (5, 45.0), false),
    product("a100-pcie", 80, 108, None, (4, 20.0), false),
    product("a100", 80, 108, Some((12, 20.0, 235.0)), (4, 20.0), false),
    product("a6000", 86, 84, None, (4, 20.0), false),
    product("a10", 86, 72, None, (4, 20.0), false),
    product("l40", 89, 142, None, (4, 20.0), false),
    product("l20", 89, 92, None, (4, 20.0), false),
    product("4090", 89, 128, None, (4, 16.0), false),
    product("4070", 89, 66, None, (4, 8.0), false),
    product("v100", 70, 80, Some((6, 20.0, 134.0)), (3, 10.0), false),
    product("p100", 60, 56, Some((4, 18.0, 70.0)), (3, 10.0), false),
    product("t4", 75, 40, None, (3, 5.0), false),
    product("2080", 75, 68, None, (3, 5.0), false),
    product("3090", 86, 82, None, (4, 12.0), false),
    product("titan", 70, 80, None, (3, 10.0), false),
];
/// Taken where the source names no GPU.
const UNNAMED: Product = product("", 80, 108, None, (4, 20.0), false);

/// A network that words describe.
#[derive(Debug, Clone, Copy)]
struct Network {
    link: InterLink,
    /// µs that the network plugin declares to NCCL.
    declared: f32,
    /// Path from GPU to NIC.
    path: PathType,
    /// Gb/s of one node and its NICs, where the words do not say.
    node_gbps: f64,
    nics: u32,
}

/// The cluster and communicator of a table, or why there is none.
pub(super) fn describe(table: &Table) -> Result<(Cluster, Communicator), String> {
    let nodes = table.nodes.ok_or("the number of nodes is not stated")?;
    let local = table.gpus_per_node.ok_or("the GPUs per node are not stated")?;
    let name = table.gpu.to_lowercase();
    let product = PRODUCTS.iter().find(|p| name.contains(p.pattern)).copied().unwrap_or(UNNAMED);
    let mut shape = (nodes, local);
    let words = format!("{} {}", table.intra, table.inter).to_lowercase();
    // A rack-wide NVLink domain is one node to NCCL.
    if words.contains("nvl72") && nodes > 1 {
        let per_rack = 72 / local.max(1);
        shape = (nodes.div_ceil(per_rack).max(1), local * nodes.min(per_rack));
    }
    let (nodes, local) = shape;
    if nodes * local < 2 {
        return Err("a single rank".to_owned());
    }
    let intra = intra(&table.intra.to_lowercase(), &product, local);
    let network = (nodes > 1).then(|| network(table, &product, local));
    let cluster = assemble(table, &product, local, nodes, intra, network);
    let options = CommOptions {
        version: version(&table.nccl_version),
        overrides: Overrides::default(),
        ..CommOptions::default()
    };
    let communicator = cluster.communicator(nodes, &options).map_err(|e| e.to_string())?;
    Ok((cluster, communicator))
}

fn version(text: &str) -> Version {
    match text.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()) {
        Some(30..) => Version::V2_30,
        Some(29) => Version::V2_29,
        _ => Version::V2_28,
    }
}

fn intra(words: &str, product: &Product, local: u32) -> Intra {
    let source = "from the table's words and the GPU's usual links".to_owned();
    let make = |link, generation, nvswitch, bandwidth| Intra {
        link,
        generation,
        nvswitch,
        bandwidth,
        source: source.clone(),
    };
    if local < 2 {
        return make(IntraLink::None, 0, false, 1000.0);
    }
    if words.contains("shm") || words.contains("no p2p") || words.contains("p2p unavailable") {
        return make(IntraLink::Shm, product.pcie.0, false, product.pcie.1 * 0.8);
    }
    match product.nvlink {
        Some((_, _, bandwidth)) if !words.starts_with("pcie") => {
            let switched = words.contains("nvswitch")
                || words.contains("nvl72")
                || (product.sm >= 80
                    && !words.contains("quad")
                    && !words.contains("4-gpu")
                    && !words.contains("bridge"));
            make(IntraLink::Nvlink, 0, switched, bandwidth)
        }
        _ => make(IntraLink::Pcie, product.pcie.0, false, product.pcie.1),
    }
}

fn network(table: &Table, product: &Product, local: u32) -> Network {
    let words = table.inter.to_lowercase();
    let gpus = f64::from(local);
    let has = |any: &[&str]| any.iter().any(|w| words.contains(w));
    let mut network = if has(&["efa"]) {
        Network {
            link: InterLink::Efa,
            declared: if product.sm >= 90 { 75.0 } else { 75.0 },
            path: PathType::Pix,
            node_gbps: 100.0 * gpus.min(4.0),
            nics: 4,
        }
    } else if has(&["slingshot"]) {
        Network {
            link: InterLink::Slingshot,
            declared: 0.0,
            path: PathType::Phb,
            node_gbps: 200.0 * gpus,
            nics: local,
        }
    } else if has(&["tcpx"]) {
        Network {
            link: InterLink::Tcpx,
            declared: 0.0,
            path: PathType::Pix,
            node_gbps: 800.0,
            nics: if words.contains("tcpxo") { 8 } else { 4 },
        }
    } else if has(&["tcp", "socket", "ethernet"]) {
        Network { link: InterLink::Tcp, declared: 0.0, path: PathType::Phb, node_gbps: 25.0, nics: 1 }
    } else if has(&["roce", "gib"]) {
        Network {
            link: InterLink::Roce,
            declared: 0.0,
            path: PathType::Pix,
            node_gbps: rdma_default(product) * gpus,
            nics: local,
        }
    } else {
        Network {
            link: InterLink::Infiniband,
            declared: 0.0,
            path: PathType::Pix,
            node_gbps: rdma_default(product) * gpus,
            nics: local,
        }
    };
    if let Some((nics, node)) = stated(&format!("{} ; {} ", table.inter_gbps, table.inter), gpus) {
        network.node_gbps = node;
        network.nics =
            nics.unwrap_or_else(|| ((node / rdma_default(product)).round() as u32).clamp(1, local.max(1)));
    }
    network
}

/// Gb/s per GPU of an RDMA network of the GPU's time.
fn rdma_default(product: &Product) -> f64 {
    match product.sm {
        90.. => 400.0,
        80..=89 => 200.0,
        _ => 100.0,
    }
}

/// NICs and Gb/s of one node, where words say them: "2 x EDR 100 Gb/s per 4-GPU node", "200 Gb/s per GPU",
/// "dual rail 200G", "3200 Gb/s per node".
fn stated(words: &str, gpus: f64) -> Option<(Option<u32>, f64)> {
    let words = words.to_lowercase();
    let (rate, start, end) = rate(&words)?;
    let (before, after) = (&words[..start], &words[end..]);
    let count = before
        .rsplit_once('x')
        .filter(|(_, between)| between.len() < 12)
        .and_then(|(counted, _)| {
            counted.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        })
        .or_else(|| before.contains("dual").then_some(2));
    match count {
        Some(count) => Some((Some(count), rate * f64::from(count))),
        None if after.trim_start().starts_with("per node") => Some((None, rate)),
        None => Some((Some(gpus as u32), rate * gpus)),
    }
}

/// The first number with a unit of Gb/s, and where it stands.
fn rate(words: &str) -> Option<(f64, usize, usize)> {
    let digit = |c: char| c.is_ascii_digit() || c == '.';
    let mut from = 0;
    while let Some(start) = words[from..].find(|c: char| c.is_ascii_digit()).map(|i| from + i) {
        let end = words[start..].find(|c| !digit(c)).map_or(words.len(), |i| start + i);
        let unit = words[end..].trim_start();
        let unit_at = words.len() - unit.len();
        for name in ["gb/s", "gbps", "gbit/s", "gbit", "g "] {
            if unit.starts_with(name) {
                return Some((words[start..end].parse().ok()?, start, unit_at + name.len()));
            }
        }
        from = end;
    }
    None
}

fn assemble(
    table: &Table,
    product: &Product,
    local: u32,
    nodes: u32,
    intra: Intra,
    network: Option<Network>,
) -> Cluster {
    let source = || "the table's own metadata".to_owned();
    let inter = network.map(|n| Inter {
        link: n.link,
        nics: n.nics.max(1),
        nic_rate: n.node_gbps / 8.0 / f64::from(n.nics.max(1)),
        bandwidth: n.node_gbps / 8.0 * if n.link == InterLink::Tcp { 0.9 } else { 0.94 },
        propagation: 0.0,
        shaped: false,
        hop: None,
        source: source(),
    });
    let graphs = graphs(product, &intra, network.as_ref(), local);
    Cluster {
        name: table.id.clone(),
        description: format!("{nodes} x {local} {}", table.gpu),
        gpus_per_node: local,
        tiers: vec![TierFrom { nodes: 1, tier: 2, hop_latency: 0.0, bandwidth_share: 1.0 }],
        gpu: Gpu { name: table.gpu.clone(), sm: product.sm, sms: product.sms, source: source() },
        host: Host {
            cpu: if product.arm {
                CpuVendor::Other
            } else if product.sm == 80 {
                CpuVendor::Amd
            } else {
                CpuVendor::Intel
            },
            arch: if product.arm { CpuArch::Arm } else { CpuArch::X86 },
            source: source(),
        },
        intra,
        inter,
        graphs: GraphSet {
            source: source(),
            single: (nodes == 1).then_some(graphs),
            multi: (nodes > 1).then_some(graphs),
        },
        calibration: Calibration::default(),
    }
}

fn graphs(product: &Product, intra: &Intra, network: Option<&Network>, local: u32) -> Graphs {
    let near = match intra.link {
        IntraLink::Nvlink => PathType::Nvl,
        IntraLink::None => PathType::Loc,
        _ => PathType::Sys,
    };
    let graph = |channels: u32, bi: f32, bx: f32, pattern, same| Graph {
        channels,
        bw_intra: bi,
        bw_inter: bx,
        type_intra: near,
        type_inter: network.map_or(PathType::Pix, |n| n.path),
        pattern,
        same_channels: same,
        latency_inter: network.map_or(0.0, |n| n.declared),
    };
    let (channels, speed) = match (intra.link, product.nvlink) {
        (IntraLink::Nvlink, Some((channels, speed, _))) => (channels, speed),
        _ => (1, intra.bandwidth as f32),
    };
    let Some(network) = network else {
        let nvls = (product.sm >= 90 && intra.nvswitch && local > 1).then(|| {
            let heads = local.min(32);
            let total = channels as f32 * speed;
            let bi = match local {
                8 => {
                    if product.sm >= 100 {
                        80.0
                    } else {
                        40.0
                    }
                }
                2 | 4 => {
                    if product.sm >= 100 {
                        90.0
                    } else {
                        60.0
                    }
                }
                n => (total / n as f32).floor(),
            };
            graph(heads, bi, if product.sm >= 100 { 90.0 } else { 60.0 }, 5, false)
        });
        return Graphs {
            ring: graph(channels, speed, speed, 4, true),
            tree: graph(channels, speed, speed, 1, true),
            nvls,
            collnet_chain: None,
            collnet_direct: None,
        };
    };
    let rate = (network.node_gbps / 8.0 / f64::from(network.nics.max(1))) as f32 * 0.96;
    let speed_list = [48.0, 24.0, 12.0, 6.0, 3.0, 1.2, 0.12];
    let each = speed_list.into_iter().find(|&s| s <= rate).unwrap_or(0.12);
    let (c, b) =
        if local == 1 && each > 24.0 { (2 * network.nics, each / 2.0) } else { (network.nics, each) };
    let mut ring = graph(c.min(16), b, b, 4, local == 1);
    ring.type_intra = if local == 1 { PathType::Loc } else { near };
    let pattern = if product.sm >= 90 || local == 1 { 3 } else { 1 };
    let tree_intra = if local == 1 {
        b * 2.0
    } else if product.sm >= 90 {
        b.max(48.0f32.min(b * 2.0))
    } else {
        (b * 2.0).min(channels as f32 * speed / c as f32)
    };
    let mut tree = graph(c.min(16), tree_intra, b, pattern, local == 1);
    tree.type_intra = ring.type_intra;
    let nvls = (product.sm >= 90 && intra.nvswitch && local > 1)
        .then(|| graph(local.min(32), if product.sm >= 100 { 48.0 } else { 40.0 }, each, 5, false));
    Graphs { ring, tree, nvls, collnet_chain: None, collnet_direct: None }
}
