//! The GPUs and NICs of a node with the ports that lead to them, in NCCL's order.

use dynamiccl_env::cluster::topology::{Device, GpuDevice, NvTarget, Topology};

use crate::machine::Place;

/// What a walk over a node finds.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// Ports of the GPUs.
    pub gpus: Vec<Place>,
    /// Ports and nominal rates of the NICs' network devices.
    pub nics: Vec<(Place, f64)>,
    devices: Vec<&'a GpuDevice>,
}

impl<'a> Found<'a> {
    /// Walks over a node, depth first.
    pub fn new(topology: &'a Topology) -> Self {
        let mut found = Found::default();
        for (socket, at) in topology.sockets.iter().zip(0..) {
            found.below(&socket.devices, &vec![at]);
        }
        found
    }

    fn below(&mut self, devices: &'a [Device], place: &Place) {
        for (device, port) in devices.iter().zip(0..) {
            match device {
                Device::Gpu(gpu) => {
                    self.gpus.push(place.clone());
                    self.devices.push(gpu);
                }
                Device::Nic(nic) => {
                    let nets = nic.nets.iter().map(|net| (place.clone(), f64::from(net.rate)));
                    self.nics.extend(nets);
                }
                Device::Switch(switch) => self.below(&switch.devices, &[place.as_slice(), &[port]].concat()),
            }
        }
    }

    /// What the first GPUs send each other over links of their own, where all links of one carry `port`.
    /// GPUs that share no link get the slowest path there is: through the host, at a tenth of a port.
    pub fn pairs(&self, topology: &Topology, count: u32, port: f64) -> Vec<Vec<f64>> {
        let most = f64::from(topology.nvlinks_per_gpu().max(1));
        let links = |from: &GpuDevice, to: &GpuDevice| {
            let direct = from.nvlinks.iter().filter(|links| links.to == NvTarget::Gpu(to.bus));
            direct.map(|links| f64::from(links.count)).sum::<f64>()
        };
        let gpus = &self.devices[..count as usize];
        let joined = gpus.iter().all(|a| gpus.len() == 1 || gpus.iter().any(|b| links(a, b) > 0.0));
        let host = if joined { 0.0 } else { port / 10.0 };
        let rate = |from: &GpuDevice, to: &GpuDevice| match links(from, to) {
            0.0 if from.bus != to.bus => host,
            count => count * port / most,
        };
        gpus.iter().map(|a| gpus.iter().map(|b| rate(a, b)).collect()).collect()
    }
}
