//! The PCI tree of a running node, as Linux shows it under `/sys/devices`.
//!
//! The tree says which GPU shares a switch with which NIC. It says nothing of NVLink: that comes from the
//! cluster that the machine is built with. A tree can be recorded as a text, one function per line, so that
//! a tree of another node can be looked at here.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::cluster::hardware::NvFabric;
use dynamiccl_env::cluster::topology::{
    Device, GpuDevice, Net, Nic, NvLinks, NvTarget, Socket, Switch, Topology,
};
use dynamiccl_env::text;

use crate::error::SynthError;

/// Deepest nesting of bridges that is followed.
const DEEPEST: usize = 32;
/// NVIDIA's vendor number.
const NVIDIA: &str = "0x10de";

/// One PCI function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Function {
    /// Its path below `/sys/devices`: host bridge, then bridge by bridge.
    pub path: String,
    /// Class, for instance 0x030200.
    pub class: String,
    /// Vendor.
    pub vendor: String,
    /// Lanes; 0 where it has no link of its own.
    pub width: u32,
    /// Transfers per second as Linux prints them, for instance `16.0 GT/s PCIe`.
    pub speed: String,
    /// Mb/s of its network device; 0 where it has none or does not say.
    pub net_mbps: u64,
}

impl Function {
    fn is_gpu(&self) -> bool {
        self.class.starts_with("0x03") && self.vendor == NVIDIA
    }

    fn is_nic(&self) -> bool {
        self.class.starts_with("0x02")
    }

    /// GB/s of its link, as NCCL counts them.
    fn rate(&self) -> f32 {
        let transfers =
            self.speed.split([' ', '_']).next().and_then(|gt| gt.parse::<f32>().ok()).unwrap_or(8.0);
        let lanes = if self.width == 0 { 16 } else { self.width };
        lanes as f32 * 0.75 * transfers / 8.0
    }

    /// One line of a record.
    fn line(&self) -> String {
        let Function { path, class, vendor, width, speed, net_mbps } = self;
        format!(
            "{path} class={class} vendor={vendor} width={width} speed={} net={net_mbps}",
            speed.replace(' ', "_")
        )
    }

    fn parse(line: &str) -> Option<Function> {
        let mut words = line.split_whitespace();
        let mut function = Function { path: words.next()?.to_owned(), ..Function::default() };
        for word in words {
            let (key, value) = word.split_once('=')?;
            match key {
                "class" => value.clone_into(&mut function.class),
                "vendor" => value.clone_into(&mut function.vendor),
                "width" => function.width = value.parse().unwrap_or(0),
                "speed" => function.speed = value.replace('_', " "),
                "net" => function.net_mbps = value.parse().unwrap_or(0),
                _ => {}
            }
        }
        Some(function).filter(|function| !function.class.is_empty())
    }
}

/// The functions of a tree: `path` is a folder such as `/sys`, or a recorded text.
pub fn read(path: &Path) -> Result<Vec<Function>, SynthError> {
    let failed = |source| SynthError::Read { path: path.display().to_string(), source };
    if path.is_dir() {
        let mut functions = Vec::new();
        let bridges = fs::read_dir(path.join("devices")).map_err(failed)?.flatten();
        for bridge in bridges.filter(|entry| entry.file_name().to_string_lossy().starts_with("pci")) {
            below(&bridge.path(), &bridge.file_name().to_string_lossy(), 0, &mut functions);
        }
        functions.sort_by(|a, b| a.path.cmp(&b.path));
        return Ok(functions);
    }
    let text = text::read(path).map_err(failed)?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|(line, number)| {
        Function::parse(line).ok_or_else(|| SynthError::Format {
            file: path.display().to_string(),
            place: format!("line {number}"),
            problem: format!("\"{line}\" is no function: write PATH class=0x… vendor=0x… width=N speed=…"),
        })
    });
    parsed.collect()
}

/// The record of a tree.
pub fn record(functions: &[Function]) -> String {
    functions.iter().map(|function| function.line() + "\n").collect()
}

fn below(folder: &Path, path: &str, depth: usize, functions: &mut Vec<Function>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    // A function is called like 0000:1b:00.0.
    let is_function = |name: &&String| name.len() >= 12 && name.bytes().filter(|&b| b == b':').count() == 2;
    for name in names.iter().filter(is_function).filter(|_| depth < DEEPEST) {
        let (folder, path) = (folder.join(name), format!("{path}/{name}"));
        let said = |file: &str| text::read(folder.join(file)).unwrap_or_default().trim().to_owned();
        functions.push(Function {
            class: said("class"),
            vendor: said("vendor"),
            width: said("current_link_width").parse().unwrap_or(0),
            speed: said("current_link_speed"),
            net_mbps: net_mbps(&folder),
            path: path.clone(),
        });
        below(&folder, &path, depth + 1, functions);
    }
}

/// What Linux says of a NIC's speed: its first network interface that knows, or its first InfiniBand port.
fn net_mbps(folder: &Path) -> u64 {
    let entries = |kind: &str| fs::read_dir(folder.join(kind)).into_iter().flatten().flatten();
    let mbps = |entry: fs::DirEntry| text::read(entry.path().join("speed")).ok()?.trim().parse().ok();
    let rate = |entry: fs::DirEntry| {
        let text = text::read(entry.path().join("ports/1/rate")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok().map(|gbps| (gbps * 1e3) as u64)
    };
    let speed = entries("net").filter_map(mbps).find(|&mbps: &u64| mbps > 0);
    speed.or_else(|| entries("infiniband").filter_map(rate).next()).unwrap_or(0)
}

/// The inside of the node: GPUs and NICs under their bridges, joined by NVLink as the cluster says.
pub fn topology(functions: &[Function], cluster: &Cluster, file: &str) -> Result<Topology, SynthError> {
    let gpus: Vec<&Function> = functions.iter().filter(|function| function.is_gpu()).collect();
    if gpus.is_empty() {
        let problem = "no NVIDIA GPU in this tree: record it on a node that has one".to_owned();
        return Err(SynthError::Format { file: file.to_owned(), place: "tree".to_owned(), problem });
    }
    let nics = nics(functions, &gpus, cluster);
    let inside = Inside { functions, gpus, nics, cluster };
    let mut bridges: Vec<&str> = functions.iter().filter_map(|f| f.path.split('/').next()).collect();
    bridges.sort_unstable();
    bridges.dedup();
    let socket = |bridge: &&str| Socket {
        host: 0,
        arch: cluster.host.arch,
        vendor: cluster.host.cpu,
        link: 16.0,
        devices: inside.devices(bridge, 0),
    };
    let sockets: Vec<Socket> =
        bridges.iter().map(socket).filter(|socket| !socket.devices.is_empty()).collect();
    Ok(Topology { sockets, no_peer_to_peer: false })
}

/// As many NICs as the cluster says that GPUs talk over: first those that are the nearest to some GPU, then whichever
/// is near to one; of equals the faster. Others are for storage or for logging in.
fn nics<'a>(functions: &'a [Function], gpus: &[&Function], cluster: &Cluster) -> Vec<&'a Function> {
    let nics: Vec<&Function> = functions.iter().filter(|function| function.is_nic()).collect();
    let Some(inter) = &cluster.inter else { return nics };
    let speed = |nic: &Function| if nic.net_mbps > 0 { nic.net_mbps as f64 } else { 8e3 * inter.nic_rate };
    let mut ordered = nics.clone();
    ordered.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let nearest: Vec<&Function> = gpus
        .iter()
        .filter_map(|gpu| ordered.iter().min_by_key(|nic| Reverse(shared(&nic.path, &gpu.path))).copied())
        .collect();
    let near = |nic: &Function| gpus.iter().map(|gpu| shared(&nic.path, &gpu.path)).max().unwrap_or(0);
    ordered.sort_by_key(|nic| (!nearest.contains(nic), Reverse(near(nic))));
    ordered.truncate(inter.nics as usize);
    nics.into_iter().filter(|nic| ordered.contains(nic)).collect()
}

/// Bridges that lead to both paths.
fn shared(a: &str, b: &str) -> usize {
    a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).count()
}

struct Inside<'a> {
    functions: &'a [Function],
    gpus: Vec<&'a Function>,
    /// Those that GPUs talk over.
    nics: Vec<&'a Function>,
    cluster: &'a Cluster,
}

impl Inside<'_> {
    /// Devices directly below a path; bridges without any are left out.
    fn devices(&self, path: &str, depth: usize) -> Vec<Device> {
        let child = |f: &&Function| f.path.strip_prefix(path).is_some_and(|rest| rest.rfind('/') == Some(0));
        let children = self.functions.iter().filter(child).filter(|_| depth < DEEPEST);
        children.filter_map(|function| self.device(function, depth)).collect()
    }

    fn device(&self, function: &Function, depth: usize) -> Option<Device> {
        if function.is_gpu() {
            return Some(Device::Gpu(self.gpu(function)));
        }
        if function.is_nic() {
            return self.nics.contains(&function).then(|| {
                Device::Nic(Nic { pcie: function.rate(), unplaced: false, nets: vec![self.net(function)] })
            });
        }
        let devices = self.devices(&function.path, depth + 1);
        let bus = self.functions.iter().position(|other| other == function)? as u64 + 1000;
        (!devices.is_empty())
            .then(|| Device::Switch(Switch { bus, pcie: function.rate(), peers: Vec::new(), devices }))
    }

    fn gpu(&self, function: &Function) -> GpuDevice {
        let dev = self.gpus.iter().position(|gpu| *gpu == function).unwrap_or(0);
        let bus = |dev: usize| dev as u64 + 1;
        let fabric = super::layout::fabric(self.cluster);
        let links = |to| NvLinks { to, count: 1 };
        let nvlinks = match fabric {
            NvFabric::None => Vec::new(),
            NvFabric::Switch => vec![links(NvTarget::Switch)],
            NvFabric::Pairs => vec![links(NvTarget::Gpu(bus(dev ^ 1)))],
            NvFabric::Mesh | NvFabric::CubeMesh => {
                let peers = (0..self.gpus.len()).filter(|&peer| peer != dev);
                peers.map(|peer| links(NvTarget::Gpu(bus(peer)))).collect()
            }
        };
        let sm = self.cluster.gpu.sm;
        GpuDevice { bus: bus(dev), pcie: function.rate(), dev: dev as u32, sm, gdr: true, nvlinks, c2c: 0.0 }
    }

    fn net(&self, function: &Function) -> Net {
        let dev = self.nics.iter().position(|nic| *nic == function).unwrap_or(0) as u32;
        // One that does not say is as fast as the cluster's.
        let usual = self.cluster.inter.as_ref().map_or(function.rate(), |inter| inter.nic_rate as f32);
        let rate = if function.net_mbps > 0 { function.net_mbps as f32 / 8000.0 } else { usual };
        let name = function.path.rsplit('/').next().unwrap_or_default().to_owned();
        Net { name, dev, rate, latency: 0.0, port: 1, guid: u64::from(dev) + 1, gdr: true, collnet: false }
    }
}
