//! A cluster: what a machine is made of, how fast its links really are, and the graphs that NCCL's
//! own search finds on it.
//!
//! A cluster file states facts with their source and knows nothing of times: NCCL's decision and
//! the performance model both start from it, one from the graphs, the other from the links.

use dynamiccl_spec::{NodeLink, TopologyClass};
use serde::{Deserialize, Serialize};

use crate::nccl::graph::Graphs;

mod assemble;
mod builtin;
mod check;
mod communicator;
mod dump;
mod error;
mod graph_xml;
pub mod hardware;
mod part;
pub mod search;
mod tiers;
mod topo_xml;
pub mod topology;

pub use self::communicator::{CommOptions, RANKS_MAX};
pub use self::dump::DumpError;
pub use self::error::ClusterError;
pub use self::part::{GraphPart, PARTS};
pub use self::tiers::TIERS;
pub use crate::nccl::host::{CpuArch, CpuVendor};

/// One machine type, in any number of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The file's name, or what the user called it.
    #[serde(skip)]
    pub name: String,
    /// One line for people.
    pub description: String,
    /// GPUs in one node, that is in one NVLink domain where there is one.
    pub gpus_per_node: u32,
    /// The tier from a node count on, ascending; the first entry is for the smallest communicator.
    pub tiers: Vec<TierFrom>,
    /// The GPU.
    pub gpu: Gpu,
    /// The host.
    pub host: Host,
    /// Links inside a node.
    pub intra: Intra,
    /// Links between nodes; none where the machine is one node.
    pub inter: Option<Inter>,
    /// What NCCL's search finds.
    pub graphs: GraphSet,
    /// What `calibrate` fitted; 1 everywhere means "as the model knows this kind of machine".
    #[serde(default)]
    pub calibration: Calibration,
}

/// From this node count on, communicators are of this tier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierFrom {
    /// The smallest node count; one fewer fit into a group of the tier below.
    pub nodes: u32,
    /// The tier, 0 to 4.
    pub tier: u8,
    /// µs more for a hop from one group to another.
    #[serde(default)]
    pub hop_latency: f64,
    /// Share of a node's bandwidth left between groups.
    #[serde(default = "whole")]
    pub bandwidth_share: f64,
}

fn whole() -> f64 {
    1.0
}

fn fat_tree() -> TopologyClass {
    TopologyClass::FatTree
}

/// The GPU of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Product name.
    pub name: String,
    /// Compute capability × 10, as NCCL counts it (80 for A100, 90 for H100).
    pub sm: u32,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Where the numbers come from.
    pub source: String,
}

/// The host of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// CPU vendor.
    pub cpu: CpuVendor,
    /// CPU architecture.
    pub arch: CpuArch,
    /// Where the numbers come from.
    pub source: String,
}

/// Technology of the links inside a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntraLink {
    /// One GPU per node: no link inside.
    None,
    /// NVLink, any generation.
    Nvlink,
    /// PCIe peer to peer.
    Pcie,
    /// Through host memory: no peer to peer.
    Shm,
}

impl From<IntraLink> for NodeLink {
    fn from(link: IntraLink) -> Self {
        match link {
            IntraLink::None => NodeLink::None,
            IntraLink::Nvlink => NodeLink::Nvlink,
            IntraLink::Pcie => NodeLink::Pcie,
            IntraLink::Shm => NodeLink::Shm,
        }
    }
}

/// Links inside a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intra {
    /// Technology.
    pub link: IntraLink,
    /// Generation of NVLink or PCIe; 0 where it has none.
    #[serde(default)]
    pub generation: u8,
    /// Whether the GPUs meet in an NVSwitch.
    #[serde(default)]
    pub nvswitch: bool,
    /// GB/s that one GPU really moves one way.
    pub bandwidth: f64,
    /// Where the numbers come from.
    pub source: String,
}

/// Technology of the links between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterLink {
    /// InfiniBand with GPUDirect RDMA.
    Infiniband,
    /// RDMA over Ethernet.
    Roce,
    /// AWS EFA.
    Efa,
    /// HPE Slingshot through libfabric.
    Slingshot,
    /// Google's GPUDirect-TCPX and TCPXO.
    Tcpx,
    /// Kernel TCP sockets.
    Tcp,
    /// Kernel TCP between ranks of one host, through its loopback device.
    TcpLoopback,
    /// Kernel TCP between ranks of one host, through virtual Ethernet.
    TcpVeth,
}

/// Links between nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inter {
    /// Technology.
    pub link: InterLink,
    /// How the network is wired.
    #[serde(default = "fat_tree")]
    pub class: TopologyClass,
    /// NICs per node.
    pub nics: u32,
    /// Nominal GB/s of one NIC, one way.
    pub nic_rate: f64,
    /// GB/s that one node really moves one way, all NICs together.
    pub bandwidth: f64,
    /// Whether circuits join the neighbours of a ring and nobody else, as on photonic rails.
    #[serde(default)]
    pub rings_only: bool,
    /// Whether a token bucket paces the link: bursts pass, only the average is held to the bandwidth.
    #[serde(default)]
    pub shaped: bool,
    /// One-way propagation between nodes in µs, beyond what the technology implies.
    #[serde(default)]
    pub propagation: f64,
    /// Hop latency in µs for LL, LL128 and Simple, where it is known or meant to differ from what the
    /// model knows of the technology.
    pub hop: Option<[f64; 3]>,
    /// Where the numbers come from.
    pub source: String,
}

/// NCCL's graphs for one node and for several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphSet {
    /// Where the graphs come from.
    pub source: String,
    /// On one node, where a communicator of one node makes sense.
    pub single: Option<Graphs>,
    /// On several nodes.
    pub multi: Option<Graphs>,
    /// Where a communicator uses a part of each node, by how many ranks; ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub part: Vec<GraphPart>,
}

/// What `calibrate` may change: factors on the model's constants for this cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Calibration {
    /// On launch times.
    pub launch: f64,
    /// On hop latencies inside a node.
    pub intra_latency: f64,
    /// On the bandwidth inside a node.
    pub intra_bandwidth: f64,
    /// On hop latencies between nodes.
    pub inter_latency: f64,
    /// On the bandwidth between nodes.
    pub inter_bandwidth: f64,
    /// On what one channel can move.
    pub channel_rate: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Calibration {
            launch: 1.0,
            intra_latency: 1.0,
            intra_bandwidth: 1.0,
            inter_latency: 1.0,
            inter_bandwidth: 1.0,
            channel_rate: 1.0,
        }
    }
}
