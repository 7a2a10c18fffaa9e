//! A few facts about a node, laid out as the topology that NCCL would find in it.
//!
//! Most machines are described in a sentence: eight GPUs on an NVSwitch, a NIC beside each. The
//! layout spreads GPUs and NICs evenly over sockets and switches, as vendors do; what a machine does
//! differently, a dump of its topology says better.

use super::search::{self, Span};
use super::topology::{
    Device, GpuDevice, Net, Nic, NvLinks, NvTarget, Socket, Switch, Topology, nvlink_rate, socket_link,
};
use super::{CpuArch, CpuVendor};
use crate::nccl::graph::{Graphs, PathType};

/// Intel's model number for Sapphire Rapids, which stands for all newer hosts.
const SAPPHIRE_RAPIDS: u32 = 0x8f;

/// How NVLink joins the GPUs of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvFabric {
    /// Not at all.
    None,
    /// Through NVSwitches.
    Switch,
    /// Each GPU directly with every other.
    Mesh,
    /// Two by two, with bridges.
    Pairs,
    /// The cube mesh of eight GPUs in a DGX-1.
    CubeMesh,
}

/// What a node is made of. Rates are GB/s as NCCL counts them.
#[derive(Debug, Clone, PartialEq)]
pub struct Hardware {
    /// GPUs of one host.
    pub gpus: u32,
    /// Hosts that share one NVLink domain; usually 1.
    pub hosts: u32,
    /// Compute capability × 10.
    pub sm: u32,
    /// How NVLink joins the GPUs.
    pub nvlink: NvFabric,
    /// All NVLinks of one GPU together: 120 for V100, 240 for A100, 370.8 for H100, 721.8 for B200.
    pub nvlink_rate: f32,
    /// One ×16 port: 12, 24 or 48 for PCIe 3, 4 or 5.
    pub pcie: f32,
    /// GPUs behind one PCIe switch; 0 where they sit on root ports.
    pub gpus_per_switch: u32,
    /// Chip-to-chip link of a GPU to its CPU; 0 without one.
    pub c2c: f32,
    /// Sockets, or NUMA nodes, of one host.
    pub sockets: u32,
    /// CPU vendor.
    pub cpu: CpuVendor,
    /// CPU architecture.
    pub arch: CpuArch,
    /// The link between two sockets, where NCCL's own number for the vendor is not meant.
    pub socket_link: Option<f32>,
    /// Whether GPUs without NVLink may talk to each other directly.
    pub peer_to_peer: bool,
    /// The rate of each NIC of one host.
    pub nics: Vec<f32>,
    /// Where the NICs are: `Pix` beside GPUs behind the same switch, `Pxb` one switch further up,
    /// `Sys` on a socket without GPUs, anything else on root ports.
    pub nic_path: PathType,
    /// Whether NICs read and write GPU memory by themselves; kernel TCP does not.
    pub gpu_direct: bool,
    /// Latency that the network plugin declares, in µs.
    pub latency: f32,
    /// Whether the network offers in-network collectives.
    pub collnet: bool,
}

impl Hardware {
    /// GPUs of one host with the PCIe of their generation, without NVLink and without NICs.
    pub fn new(sm: u32, gpus: u32) -> Hardware {
        let modern = sm >= 90;
        Hardware {
            gpus,
            hosts: 1,
            sm,
            nvlink: NvFabric::None,
            nvlink_rate: 0.0,
            pcie: match sm {
                90.. => 48.0,
                80..90 => 24.0,
                _ => 12.0,
            },
            gpus_per_switch: if modern { 1 } else { 2 },
            c2c: 0.0,
            sockets: if gpus > 4 { 2 } else { 1 },
            cpu: CpuVendor::Intel,
            arch: CpuArch::X86,
            socket_link: None,
            peer_to_peer: true,
            nics: Vec::new(),
            nic_path: PathType::Pix,
            gpu_direct: true,
            latency: 0.0,
            collnet: false,
        }
    }

    /// The same on NVSwitches, with as many NVLinks per GPU.
    pub fn on_nvswitch(self, links: u32) -> Hardware {
        Hardware { nvlink: NvFabric::Switch, nvlink_rate: nvlink_rate(self.sm) * links as f32, ..self }
    }

    /// The same with `count` NICs of `gbits` Gb/s each.
    pub fn with_nics(self, count: usize, gbits: f32) -> Hardware {
        Hardware { nics: vec![gbits / 8.0; count], ..self }
    }

    /// The same with its NICs on root ports, without direct access to GPU memory.
    pub fn over_tcp(self) -> Hardware {
        Hardware { nic_path: PathType::Phb, gpu_direct: false, ..self }
    }

    /// The graphs that NCCL finds on it.
    pub fn graphs(&self, span: Span) -> Option<Graphs> {
        search::graphs(&self.topology(), span)
    }

    /// The topology that NCCL would find.
    pub fn topology(&self) -> Topology {
        let sockets =
            (0..self.hosts).flat_map(|host| (0..self.sockets.max(1)).map(move |socket| (host, socket)));
        let mut topology = Topology {
            sockets: sockets.map(|(host, socket)| self.socket(host, self.devices(host, socket))).collect(),
            no_peer_to_peer: !self.peer_to_peer,
        };
        if self.nic_path == PathType::Sys {
            let far = |host| self.socket(host, self.nics_on(host, 0, 1));
            topology.sockets.extend((0..self.hosts).map(far));
        }
        topology
    }

    fn socket(&self, host: u32, devices: Vec<Device>) -> Socket {
        let link = socket_link(self.arch, self.cpu, SAPPHIRE_RAPIDS);
        let link = self.socket_link.unwrap_or(link);
        Socket { host, arch: self.arch, vendor: self.cpu, link, devices }
    }

    /// GPUs and NICs of one socket, behind switches where there are any.
    fn devices(&self, host: u32, socket: u32) -> Vec<Device> {
        let sockets = self.sockets.max(1);
        let gpus: Vec<Device> = share(self.gpus, socket, sockets).map(|dev| self.gpu(dev)).collect();
        let nics =
            if self.nic_path == PathType::Sys { Vec::new() } else { self.nics_on(host, socket, sockets) };
        let beside = matches!(self.nic_path, PathType::Pix | PathType::Pxb);
        let per_switch = if beside { self.gpus_per_switch.max(1) } else { self.gpus_per_switch } as usize;
        if per_switch == 0 || gpus.is_empty() {
            return [gpus, nics].concat();
        }
        let mut groups: Vec<(Vec<Device>, Vec<Device>)> =
            gpus.chunks(per_switch).map(|gpus| (gpus.to_vec(), Vec::new())).collect();
        let mut rest = Vec::new();
        let count = groups.len();
        for (index, nic) in nics.into_iter().enumerate() {
            if beside { groups[index % count].1.push(nic) } else { rest.push(nic) }
        }
        let bus = |group: usize, level: u64| 1 << 20 | u64::from(socket) << 12 | (group as u64) << 4 | level;
        let switch =
            |bus, devices| Device::Switch(Switch { bus, pcie: self.pcie, peers: Vec::new(), devices });
        let switches = groups.into_iter().enumerate().map(|(group, (gpus, nics))| match self.nic_path {
            PathType::Pxb => switch(bus(group, 0), [vec![switch(bus(group, 1), gpus)], nics].concat()),
            _ => switch(bus(group, 0), [gpus, nics].concat()),
        });
        switches.chain(rest).collect()
    }

    fn gpu(&self, dev: u32) -> Device {
        let links = (self.nvlink_rate / nvlink_rate(self.sm)).round().max(0.0) as u32;
        let to = |peer: u32, count: u32| NvLinks { to: NvTarget::Gpu(gpu_bus(peer)), count };
        let peers = || (0..self.gpus).filter(move |&peer| peer != dev);
        let nvlinks = match self.nvlink {
            NvFabric::None => Vec::new(),
            NvFabric::Switch => vec![NvLinks { to: NvTarget::Switch, count: links }],
            NvFabric::Mesh => peers().map(|peer| to(peer, links / (self.gpus - 1).max(1))).collect(),
            NvFabric::Pairs => peers().filter(|&peer| peer == dev ^ 1).map(|peer| to(peer, links)).collect(),
            NvFabric::CubeMesh => peers().map(|peer| to(peer, cube_links(dev, peer))).collect(),
        };
        Device::Gpu(GpuDevice {
            bus: gpu_bus(dev),
            pcie: self.pcie,
            dev,
            sm: self.sm,
            gdr: true,
            nvlinks: nvlinks.into_iter().filter(|links| links.count > 0).collect(),
            c2c: self.c2c,
        })
    }

    fn nics_on(&self, host: u32, socket: u32, sockets: u32) -> Vec<Device> {
        let net = |dev: u32| Net {
            name: format!("nic{dev}"),
            dev,
            rate: self.nics[dev as usize],
            latency: self.latency,
            port: 1,
            guid: u64::from(host) << 32 | (u64::from(dev) + 1),
            gdr: self.gpu_direct,
            collnet: self.collnet,
        };
        let nic = |dev| Device::Nic(Nic { pcie: self.pcie, unplaced: false, nets: vec![net(dev)] });
        share(self.nics.len() as u32, socket, sockets).map(nic).collect()
    }
}

fn gpu_bus(dev: u32) -> u64 {
    u64::from(dev) + 1
}

/// The part of `count` things that falls to one of several places; the first ones get the rest.
fn share(count: u32, place: u32, places: u32) -> std::ops::Range<u32> {
    let (each, rest) = (count / places, count % places);
    let start = |place: u32| place * each + place.min(rest);
    start(place)..start(place + 1)
}

/// NVLinks between two GPUs of a DGX-1 with V100: two quads, each joined to the other GPU by GPU.
fn cube_links(a: u32, b: u32) -> u32 {
    const QUAD: [[u32; 4]; 4] = [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 2], [2, 1, 2, 0]];
    const ACROSS: [u32; 4] = [2, 2, 1, 1];
    let (row, column) = ((a % 4) as usize, (b % 4) as usize);
    match (a / 4 == b / 4, row == column) {
        (true, _) => QUAD[row][column],
        (false, true) => ACROSS[row],
        (false, false) => 0,
    }
}
