//! NCCL's topology dump (`NCCL_TOPO_DUMP_FILE`): what NCCL found in a node.

use std::path::Path;

use roxmltree::Node;

use super::dump::{Dump, DumpError};
use super::topology::{Device, GpuDevice, Net, Nic, NvLinks, NvTarget, Socket, Switch, Topology};
use super::{CpuArch, CpuVendor};

/// Depth of nested switches; real machines have three or four.
const MAX_DEPTH: usize = 32;
/// GPUs, NICs or sockets that NCCL takes in one node.
const MAX_DEVICES: usize = 576;
/// GB/s of a link that is no limit.
const LOCAL: f32 = 5000.0;

impl Topology {
    /// Reads the file that NCCL wrote because of `NCCL_TOPO_DUMP_FILE`.
    pub fn read(file: &Path) -> Result<Topology, DumpError> {
        let dump = Dump::read(file, "topology", "NCCL_TOPO_DUMP_FILE")?;
        let document = dump.document("system")?;
        let root = document.root_element();
        let mut reader = Reader { dump: &dump, hosts: Vec::new() };
        let mut topology = Topology::default();
        for cpu in root.children().filter(|node| node.has_tag_name("cpu")) {
            topology.sockets.push(reader.socket(cpu)?);
        }
        let most = topology.gpus().len().max(topology.nets().len()).max(topology.sockets.len());
        if most > MAX_DEVICES {
            let remedy = format!("it lists {most} devices of one kind, NCCL takes {MAX_DEVICES}");
            return Err(dump.bad(root, "version", remedy));
        }
        if topology.gpus().is_empty() {
            let remedy = "no GPU in it has a rank, as in a file made for NCCL_TOPO_FILE";
            return Err(dump.bad(root, "version", remedy));
        }
        Ok(topology)
    }
}

struct Reader<'a> {
    dump: &'a Dump,
    hosts: Vec<String>,
}

impl Reader<'_> {
    fn socket(&mut self, cpu: Node) -> Result<Socket, DumpError> {
        let hash = cpu.attribute("host_hash").unwrap_or("");
        let known = self.hosts.iter().position(|host| host == hash);
        let host = known.unwrap_or_else(|| {
            self.hosts.push(hash.to_owned());
            self.hosts.len() - 1
        });
        let arch = match cpu.attribute("arch") {
            Some("x86_64") => CpuArch::X86,
            Some("arm64") => CpuArch::Arm,
            Some("ppc64") => CpuArch::Power,
            _ => return Err(self.dump.bad(cpu, "arch", "x86_64, arm64 or ppc64 is expected")),
        };
        let vendor = match cpu.attribute("vendor") {
            Some("GenuineIntel") => CpuVendor::Intel,
            Some("AuthenticAMD") => CpuVendor::Amd,
            _ => CpuVendor::Other,
        };
        let model: u32 = self.dump.optional(cpu, "modelid")?.unwrap_or(0);
        let family: u32 = self.dump.optional(cpu, "familyid")?.unwrap_or(0);
        let link = socket_link(arch, vendor, if family == 6 { model } else { 0 });
        let devices = self.devices(cpu, 0)?;
        Ok(Socket { host: host as u32, arch, vendor, link, devices })
    }

    /// The devices below a socket or a switch.
    fn devices(&mut self, parent: Node, depth: usize) -> Result<Vec<Device>, DumpError> {
        if depth > MAX_DEPTH {
            return Err(self.dump.bad(parent, "busid", "the switches are nested too deep"));
        }
        let mut devices = Vec::new();
        for node in parent.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "pci" => devices.extend(self.pci(node, depth)?),
                "nic" => {
                    devices.push(Device::Nic(Nic { pcie: LOCAL, unplaced: true, nets: self.nets(node)? }));
                }
                _ => {}
            }
        }
        Ok(devices)
    }

    /// What a PCIe function is; nothing where it takes no part.
    fn pci(&mut self, pci: Node, depth: usize) -> Result<Option<Device>, DumpError> {
        let child = |name: &'static str| pci.children().find(move |node| node.has_tag_name(name));
        let pcie = self.pcie_rate(pci)?;
        if let Some(gpu) = child("gpu") {
            if pci.children().filter(|node| node.has_tag_name("gpu")).count() > 1 {
                return Err(self.dump.bad(
                    pci,
                    "busid",
                    "several ranks share this GPU: dump a run with one each",
                ));
            }
            return self.gpu(pci, gpu, pcie);
        }
        if let Some(nic) = child("nic") {
            return Ok(Some(Device::Nic(Nic { pcie, unplaced: false, nets: self.nets(nic)? })));
        }
        let class = pci.attribute("class").unwrap_or("");
        let other = ["0x068000", "0x068001", "0x03", "0x02"].iter().any(|prefix| class.starts_with(prefix));
        if other {
            return Ok(None);
        }
        let switch = Switch {
            bus: self.bus(pci, "busid")?,
            pcie,
            peers: self.peers(pci)?,
            devices: flatten(device_id(pci), self.sub_switches(pci, depth)?),
        };
        Ok(Some(Device::Switch(switch)))
    }

    /// The devices of a switch, each with the id of the switch that it is.
    fn sub_switches(&mut self, pci: Node, depth: usize) -> Result<Vec<(u64, Device)>, DumpError> {
        let ids: Vec<(u64, u64)> = pci
            .children()
            .filter(|node| node.has_tag_name("pci"))
            .map(|node| Ok((self.bus(node, "busid")?, device_id(node))))
            .collect::<Result<_, DumpError>>()?;
        let id_of = |bus: u64| ids.iter().find(|(known, _)| *known == bus).map_or(0, |(_, id)| *id);
        let devices = self.devices(pci, depth + 1)?;
        let id = |device: &Device| if let Device::Switch(switch) = device { id_of(switch.bus) } else { 0 };
        Ok(devices.into_iter().map(|device| (id(&device), device)).collect())
    }

    fn gpu(&self, pci: Node, gpu: Node, pcie: f32) -> Result<Option<Device>, DumpError> {
        if gpu.attribute("rank").is_none() {
            return Ok(None);
        }
        let mut device = GpuDevice {
            bus: self.bus(pci, "busid")?,
            pcie,
            dev: self.dump.required(gpu, "dev")?,
            sm: self.dump.required(gpu, "sm")?,
            gdr: self.dump.optional::<i64>(gpu, "gdr")?.unwrap_or(0) != 0,
            nvlinks: Vec::new(),
            c2c: 0.0,
        };
        for link in gpu.children().filter(Node::is_element) {
            match link.tag_name().name() {
                "nvlink" => device.nvlinks.push(self.nvlinks(link)?),
                "c2c" => {
                    device.c2c +=
                        self.dump.quantity(link, "bw")? * self.dump.quantity(link, "count")? / 1000.0;
                }
                _ => {}
            }
        }
        Ok(Some(Device::Gpu(device)))
    }

    fn nvlinks(&self, link: Node) -> Result<NvLinks, DumpError> {
        let class = link.attribute("tclass").unwrap_or("");
        let to = if class.starts_with("0x03") {
            NvTarget::Gpu(self.bus(link, "target")?)
        } else if class.starts_with("0x068001") {
            NvTarget::Cpu
        } else {
            NvTarget::Switch
        };
        let count: u32 = self.dump.required(link, "count")?;
        if count > 1024 {
            return Err(self.dump.bad(link, "count", "no GPU has that many links"));
        }
        Ok(NvLinks { to, count })
    }

    fn nets(&self, nic: Node) -> Result<Vec<Net>, DumpError> {
        let named = |node: &Node| node.has_tag_name("net") && node.attribute("dev").is_some();
        let mut nets = Vec::new();
        for net in nic.children().filter(named) {
            if self.dump.optional::<i64>(net, "net")?.unwrap_or(1) == 0 {
                continue;
            }
            // Some drivers say −1 for a rate they do not know; NCCL then takes 10 Gb/s.
            let mbps = self.dump.optional::<i64>(net, "speed")?.filter(|&speed| speed > 0).unwrap_or(10_000);
            let guid = net.attribute("guid").and_then(hex);
            nets.push(Net {
                dev: self.dump.required(net, "dev")?,
                rate: mbps as f32 / 8000.0,
                latency: self.dump.optional(net, "latency")?.filter(|l: &f32| l.is_finite()).unwrap_or(0.0),
                port: self.dump.optional(net, "port")?.unwrap_or(0),
                guid: guid.map_or_else(|| self.dump.required(net, "dev"), Ok)?,
                gdr: self.dump.optional::<i64>(net, "gdr")?.unwrap_or(0) != 0,
                collnet: self.dump.optional::<i64>(net, "coll")?.unwrap_or(0) != 0,
            });
        }
        Ok(nets)
    }

    fn peers(&self, pci: Node) -> Result<Vec<u64>, DumpError> {
        let links = pci.children().filter(|node| node.has_tag_name("pcilink"));
        links.map(|link| self.bus(link, "target")).collect()
    }

    /// GB/s of a PCIe link: lanes × rate, with NCCL's fallbacks for what the system does not say.
    fn pcie_rate(&self, pci: Node) -> Result<f32, DumpError> {
        let width: u32 = self.dump.optional(pci, "link_width")?.filter(|&lanes| lanes > 0).unwrap_or(16);
        let transfers = pci.attribute("link_speed").and_then(|speed| speed.split_once(" GT/s"));
        let hundred_mbps = match transfers.and_then(|(number, _)| number.trim().parse::<f32>().ok()) {
            Some(2.5) => 15,
            Some(5.0) => 30,
            Some(16.0) => 120,
            Some(32.0) => 240,
            Some(64.0) => 480,
            _ => 60,
        };
        Ok(width as f32 * hundred_mbps as f32 / 80.0)
    }

    fn bus(&self, node: Node, name: &str) -> Result<u64, DumpError> {
        let digits: String =
            node.attribute(name).unwrap_or("").chars().filter(|c| !":.".contains(*c)).collect();
        hex(&digits).ok_or_else(|| self.dump.bad(node, name, "a bus id such as 0000:1b:00.0 is expected"))
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Vendor, device, subsystem vendor and subsystem device of a function, as NCCL packs them.
fn device_id(pci: Node) -> u64 {
    let part = |name| pci.attribute(name).and_then(hex).unwrap_or(0) & 0xffff;
    part("vendor") << 48 | part("device") << 32 | part("subsystem_vendor") << 16 | part("subsystem_device")
}

/// The generation of a Broadcom switch that shows itself as two levels although it is one.
fn two_level_generation(id: u64, level: u64) -> u8 {
    match id & !0xfff {
        0x1000_c010_1000_a000 => 4,
        upper if upper == 0x1000_c030_1000_0000 | (level * 0x1000) => 5,
        _ => 0,
    }
}

/// The devices of a switch, with those of a lower level that is the same switch.
fn flatten(id: u64, devices: Vec<(u64, Device)>) -> Vec<Device> {
    let generation = two_level_generation(id, 0);
    let mut flat = Vec::new();
    for (id, device) in devices {
        match device {
            Device::Switch(inner) if generation != 0 && two_level_generation(id, 1) == generation => {
                flat.extend(inner.devices);
            }
            other => flat.push(other),
        }
    }
    flat
}

/// GB/s that NCCL gives the link between two sockets; `model` is Intel's.
fn socket_link(arch: CpuArch, vendor: CpuVendor, model: u32) -> f32 {
    match (arch, vendor) {
        (CpuArch::Power, _) => 32.0,
        (CpuArch::Arm, _) => 6.0,
        (CpuArch::X86, CpuVendor::Intel) => match model {
            0xcf.. => 40.0,
            0x8f..0xcf => 22.0,
            0x55..0x8f => 10.0,
            _ => 6.0,
        },
        (CpuArch::X86, CpuVendor::Amd) => 16.0,
        (CpuArch::X86, _) => 6.0,
    }
}
