//! From the tree of a topology to the graph that is searched.

use std::collections::HashMap;

use super::system::{Kind, LOCAL, LinkKind, NetFacts, System};
use crate::cluster::topology::{Device, GpuDevice, Nic, NvTarget, Switch, Topology, nvlink_rate};

impl System {
    /// The system of a topology.
    pub(super) fn new(topology: &Topology) -> System {
        let mut system = System {
            hosts: topology.hosts(),
            no_peer_to_peer: topology.no_peer_to_peer,
            ..System::default()
        };
        let mut builder = Builder::default();
        for socket in &topology.sockets {
            let cpu = system.add(Kind::Cpu { arch: socket.arch, vendor: socket.vendor });
            system.cpus.push(cpu);
            for device in &socket.devices {
                builder.device(&mut system, cpu, socket.host, device);
            }
        }
        builder.nvlinks(&mut system);
        builder.chip_links(&mut system);
        builder.switch_links(&mut system);
        system.connect_sockets(topology);
        system.upstream_last();
        system
    }

    fn connect_sockets(&mut self, topology: &Topology) {
        for (i, from) in topology.sockets.iter().enumerate() {
            for (j, to) in topology.sockets.iter().enumerate() {
                if i != j && from.host == to.host {
                    self.connect(self.cpus[i], self.cpus[j], LinkKind::Sockets, from.link);
                }
            }
        }
    }

    /// Puts the way up last in every device of the PCIe tree: a search goes down first.
    fn upstream_last(&mut self) {
        let mut todo: Vec<(usize, usize)> = Vec::new();
        for &cpu in &self.cpus {
            todo.extend(self.below(cpu, cpu));
        }
        while let Some((node, up)) = todo.pop() {
            let links = &mut self.nodes[node].links;
            if let Some(at) = links.iter().position(|l| l.to == up) {
                links[at..].rotate_left(1);
            }
            todo.extend(self.below(node, up));
        }
    }

    fn below(&self, node: usize, up: usize) -> Vec<(usize, usize)> {
        let links = self.nodes[node].links.iter();
        links.filter(|l| l.kind == LinkKind::Pci && l.to != up).map(|l| (l.to, node)).collect()
    }
}

/// What must wait until every device exists.
#[derive(Default)]
struct Builder<'a> {
    /// The NIC of a host that stands for all without a place.
    unplaced: HashMap<u32, usize>,
    by_bus: HashMap<(u32, u64), usize>,
    gpus: Vec<(usize, usize, u32, &'a GpuDevice)>,
    peers: Vec<(usize, u32, u64)>,
}

impl<'a> Builder<'a> {
    fn device(&mut self, system: &mut System, parent: usize, host: u32, device: &'a Device) {
        match device {
            Device::Switch(switch) => self.switch(system, parent, host, switch),
            Device::Gpu(gpu) => {
                let node = system.add(Kind::Gpu { sm: gpu.sm, dev: gpu.dev, gdr: gpu.gdr, host });
                system.gpus.push(node);
                self.by_bus.insert((host, gpu.bus), node);
                // The socket that owns the tree is the last one added.
                let cpu = system.cpus.last().copied().unwrap_or(parent);
                self.gpus.push((node, cpu, host, gpu));
                system.connect_both(node, parent, LinkKind::Pci, gpu.pcie);
            }
            Device::Nic(nic) => self.nic(system, parent, host, nic),
        }
    }

    fn switch(&mut self, system: &mut System, parent: usize, host: u32, switch: &'a Switch) {
        let node = system.add(Kind::Pci);
        self.by_bus.insert((host, switch.bus), node);
        self.peers.extend(switch.peers.iter().map(|&bus| (node, host, bus)));
        for device in &switch.devices {
            self.device(system, node, host, device);
        }
        system.connect_both(node, parent, LinkKind::Pci, switch.pcie);
    }

    fn nic(&mut self, system: &mut System, parent: usize, host: u32, nic: &Nic) {
        let known = self.unplaced.get(&host).copied().filter(|_| nic.unplaced);
        let node = known.unwrap_or_else(|| {
            let node = system.add(Kind::Nic);
            system.connect_both(node, parent, LinkKind::Pci, nic.pcie);
            node
        });
        if nic.unplaced {
            self.unplaced.insert(host, node);
        }
        for net in &nic.nets {
            let id = (host, net.dev);
            // NCCL finds devices by their number, so that the second of the same is never reached.
            if system.nets.iter().any(|&known| system.net(known).is_some_and(|facts| facts.id == id)) {
                continue;
            }
            let device = system.add(Kind::Net(NetFacts {
                id,
                left: net.rate,
                latency: net.latency,
                port: net.port,
                guid: net.guid,
                gdr: net.gdr,
                collnet: net.collnet,
            }));
            system.nets.push(device);
            system.connect_both(node, device, LinkKind::Network, net.rate);
        }
    }

    fn nvlinks(&self, system: &mut System) {
        for &(node, cpu, host, gpu) in &self.gpus {
            for links in &gpu.nvlinks {
                let rate = links.count as f32 * nvlink_rate(gpu.sm);
                match links.to {
                    // The other GPU lists the way back itself.
                    NvTarget::Gpu(bus) => {
                        if let Some(&to) = self.by_bus.get(&(host, bus)) {
                            system.connect(node, to, LinkKind::NvLink, rate);
                        }
                    }
                    NvTarget::Cpu => system.connect_both(node, cpu, LinkKind::NvLink, rate),
                    NvTarget::Switch => {
                        let switch = system.nvswitch.unwrap_or_else(|| system.add(Kind::NvSwitch));
                        system.nvswitch = Some(switch);
                        system.connect_both(node, switch, LinkKind::NvLink, rate);
                    }
                }
            }
        }
    }

    fn chip_links(&self, system: &mut System) {
        for &(node, cpu, _, gpu) in self.gpus.iter().filter(|(.., gpu)| gpu.c2c > 0.0) {
            system.connect_both(node, cpu, LinkKind::Chip, gpu.c2c);
        }
    }

    fn switch_links(&self, system: &mut System) {
        for (node, host, bus) in &self.peers {
            if let Some(&to) = self.by_bus.get(&(*host, *bus)) {
                system.connect(*node, to, LinkKind::Local, LOCAL);
            }
        }
    }
}
