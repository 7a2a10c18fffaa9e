//! The inside of a node, as NCCL sees it: sockets, PCIe switches, GPUs and NICs, with the rates that
//! NCCL itself gives to each link.
//!
//! A topology is either read from NCCL's own dump or laid out from a few facts about the hardware;
//! NCCL's search runs on both alike.

use super::{CpuArch, CpuVendor};

/// One node, or all hosts of one NVLink domain.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    /// The sockets, or NUMA nodes, in NCCL's order.
    pub sockets: Vec<Socket>,
    /// Whether GPUs without NVLink may talk to each other directly; consumer cards may not.
    pub no_peer_to_peer: bool,
}

/// One socket and what hangs on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Socket {
    /// The host, counted from 0; several only where one NVLink domain spans them.
    pub host: u32,
    /// Architecture.
    pub arch: CpuArch,
    /// Vendor.
    pub vendor: CpuVendor,
    /// GB/s to another socket of the same host.
    pub link: f32,
    /// Devices on its root ports.
    pub devices: Vec<Device>,
}

/// Something on a PCIe port.
#[derive(Debug, Clone, PartialEq)]
pub enum Device {
    /// A switch.
    Switch(Switch),
    /// A GPU.
    Gpu(GpuDevice),
    /// A NIC.
    Nic(Nic),
}

/// A PCIe switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Switch {
    /// Bus id.
    pub bus: u64,
    /// GB/s of its upstream port.
    pub pcie: f32,
    /// Bus ids of the switches to which it has a link of its own.
    pub peers: Vec<u64>,
    /// Devices on its downstream ports.
    pub devices: Vec<Device>,
}

/// A GPU that takes part.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuDevice {
    /// Bus id.
    pub bus: u64,
    /// GB/s of its PCIe port.
    pub pcie: f32,
    /// Its number on its host.
    pub dev: u32,
    /// Compute capability × 10.
    pub sm: u32,
    /// Whether NICs may read and write its memory.
    pub gdr: bool,
    /// NVLinks, by what they lead to.
    pub nvlinks: Vec<NvLinks>,
    /// GB/s of its chip-to-chip link to the CPU; 0 without one.
    pub c2c: f32,
}

/// NVLinks from a GPU to one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvLinks {
    /// Where they lead.
    pub to: NvTarget,
    /// How many.
    pub count: u32,
}

/// Where an NVLink leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvTarget {
    /// The NVSwitches, which NCCL takes as one.
    Switch,
    /// The GPU's own CPU.
    Cpu,
    /// The GPU with this bus id.
    Gpu(u64),
}

/// A NIC.
#[derive(Debug, Clone, PartialEq)]
pub struct Nic {
    /// GB/s of its PCIe port.
    pub pcie: f32,
    /// Whether nothing is known of its port. NCCL puts all such NICs of a host where the first is.
    pub unplaced: bool,
    /// Its network devices.
    pub nets: Vec<Net>,
}

/// A network device, as its plugin describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Net {
    /// What its driver calls it.
    pub name: String,
    /// Its number in its plugin; a device that NCCL lists twice has the same.
    pub dev: u32,
    /// GB/s.
    pub rate: f32,
    /// Latency that the plugin declares, in µs.
    pub latency: f32,
    /// Port number.
    pub port: i64,
    /// What tells one adapter from another.
    pub guid: u64,
    /// Whether it may read and write GPU memory.
    pub gdr: bool,
    /// Whether it offers in-network collectives.
    pub collnet: bool,
}

/// GB/s that NCCL gives one NVLink of a GPU.
pub fn nvlink_rate(sm: u32) -> f32 {
    match sm {
        100.. => 40.1,
        90..100 => 20.6,
        86 => 12.0,
        60..70 => 18.0,
        _ => 20.0,
    }
}

/// GB/s that NCCL gives the link between two sockets; `model` is Intel's.
pub(super) fn socket_link(arch: CpuArch, vendor: CpuVendor, model: u32) -> f32 {
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

impl Topology {
    /// The GPUs, in NCCL's order.
    pub fn gpus(&self) -> Vec<&GpuDevice> {
        self.devices().filter_map(|d| if let Device::Gpu(gpu) = d { Some(gpu) } else { None }).collect()
    }

    /// The network devices, in NCCL's order.
    pub fn nets(&self) -> Vec<&Net> {
        self.devices()
            .filter_map(|d| if let Device::Nic(nic) = d { Some(&nic.nets) } else { None })
            .flatten()
            .collect()
    }

    /// The lowest compute capability × 10; 0 without a GPU.
    pub fn sm(&self) -> u32 {
        self.gpus().iter().map(|gpu| gpu.sm).min().unwrap_or(0)
    }

    /// The most NVLinks that a GPU has.
    pub fn nvlinks_per_gpu(&self) -> u32 {
        let links = |gpu: &&GpuDevice| gpu.nvlinks.iter().fold(0u32, |sum, l| sum.saturating_add(l.count));
        self.gpus().iter().map(links).max().unwrap_or(0)
    }

    /// GB/s that NCCL gives all NVLinks of one GPU together.
    pub fn nvlink_rate_per_gpu(&self) -> f32 {
        nvlink_rate(self.sm()) * self.nvlinks_per_gpu() as f32
    }

    /// Whether the GPUs meet in an NVSwitch.
    pub fn nvswitch(&self) -> bool {
        self.gpus().iter().any(|gpu| gpu.nvlinks.iter().any(|links| links.to == NvTarget::Switch))
    }

    /// GB/s of the slowest GPU's PCIe port; 0 without a GPU.
    pub fn pcie(&self) -> f32 {
        self.gpus().iter().map(|gpu| gpu.pcie).reduce(f32::min).unwrap_or(0.0)
    }

    /// Hosts that it spans.
    pub fn hosts(&self) -> usize {
        self.sockets.iter().map(|socket| socket.host as usize + 1).max().unwrap_or(0)
    }

    /// Every device, depth first, as NCCL numbers them.
    fn devices(&self) -> impl Iterator<Item = &Device> {
        let mut stack: Vec<&Device> = Vec::new();
        let mut sockets = self.sockets.iter();
        std::iter::from_fn(move || {
            while stack.is_empty() {
                stack.extend(sockets.next()?.devices.iter().rev());
            }
            let device = stack.pop()?;
            if let Device::Switch(switch) = device {
                stack.extend(switch.devices.iter().rev());
            }
            Some(device)
        })
    }
}
