//! The paths that NCCL really uses: who may talk directly, who goes through the CPU, and who borrows
//! another GPU's NIC.

use super::paths::{Path, Paths, merged};
use super::system::{Kind, System};
use crate::cluster::{CpuArch, CpuVendor};
use crate::nccl::graph::PathType;

/// Channels that NCCL may have, and so the most NICs that one GPU is asked about.
pub(super) const MAX_CHANNELS: usize = 64;

/// Paths after all rules, and the NICs that belong to each GPU.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// The paths.
    pub(super) paths: Paths,
    /// The NICs that each GPU prefers, in the order in which its channels take them.
    pub(super) nets_of: Vec<Vec<usize>>,
    /// The GPU that each NIC serves, if it is some GPU's preferred one.
    pub(super) gpu_of: Vec<Option<usize>>,
}

impl Routes {
    /// The routes of a system; NICs and GPUs are counted in the system's lists.
    pub(super) fn new(system: &System) -> Routes {
        let mut paths = Paths::direct(system);
        through_cpu(system, &mut paths);
        over_chip_link(system, &mut paths);
        for net in 0..system.nets.len() {
            for gpu in 0..system.gpus.len() {
                over_other_gpu(system, &mut paths, gpu, net);
                without_direct_access(system, &mut paths, gpu, net);
            }
        }
        let nets_of = (0..system.gpus.len()).map(|gpu| preferred_nets(system, &paths, gpu)).collect();
        let gpu_of = (0..system.nets.len()).map(|net| served_gpu(system, &paths, net)).collect();
        Routes { paths, nets_of, gpu_of }
    }

    /// The NICs of a GPU by channel, until they repeat.
    pub(super) fn nets(&self, gpu: usize) -> &[usize] {
        &self.nets_of[gpu]
    }
}

/// Diverts GPUs that may not talk directly through the CPU of the receiver.
fn through_cpu(system: &System, paths: &mut Paths) {
    let pair_on_amd = system.cpu() == Some((CpuArch::X86, CpuVendor::Amd)) && system.gpus.len() <= 2;
    let farthest = if pair_on_amd { PathType::Sys } else { PathType::Pxb };
    for &to in &system.gpus {
        for &from in system.gpus.iter().filter(|&&from| from != to) {
            let kind = paths.get(from, to).kind;
            let allowed = kind <= farthest && !(system.no_peer_to_peer && kind > PathType::Nvb);
            if let Some(cpu) = local_cpu(system, paths, to).filter(|_| !allowed) {
                let path = paths.over(from, cpu, to);
                paths.set(from, to, path);
            }
        }
    }
}

/// The CPU nearest to a GPU.
fn local_cpu(system: &System, paths: &Paths, gpu: usize) -> Option<usize> {
    let local = paths.local(gpu, &system.cpus).into_iter().map(|cpu| system.cpus[cpu]);
    local.min_by_key(|&cpu| paths.get(gpu, cpu).links.len())
}

/// Marks NICs that a GPU reaches over its chip-to-chip link.
fn over_chip_link(system: &System, paths: &mut Paths) {
    for &gpu in &system.gpus {
        let Some(cpu) = local_cpu(system, paths, gpu) else { continue };
        for net in paths.local(gpu, &system.nets) {
            let net = system.nets[net];
            if merged(paths.get(gpu, cpu).kind, paths.get(net, cpu).kind) == PathType::P2c {
                paths.nearer(gpu, net, PathType::P2c);
                paths.nearer(net, gpu, PathType::P2c);
            }
        }
    }
}

/// Sends through the NVLink-connected GPU beside a NIC where that is faster or avoids the CPU.
fn over_other_gpu(system: &System, paths: &mut Paths, gpu: usize, net: usize) {
    let Some(other) = served_gpu(system, paths, net).filter(|&other| other != gpu) else { return };
    let (gpu, other, net) = (system.gpus[gpu], system.gpus[other], system.nets[net]);
    let (own, theirs) = (paths.get(gpu, net), paths.get(other, net));
    let near = theirs.kind <= PathType::P2c && direct_access(system, paths, other, net, true);
    let connected =
        paths.get(other, gpu).kind <= PathType::Nvl && host_of(system, gpu) == host_of(system, other);
    let worth_it = theirs.rate > own.rate || own.kind > PathType::Pxn;
    if near && connected && worth_it {
        let path = Path { kind: PathType::Pxn, ..paths.over(gpu, other, net) };
        paths.set(gpu, net, path);
    }
}

/// Diverts what a NIC may not do by itself through the GPU's CPU.
fn without_direct_access(system: &System, paths: &mut Paths, gpu: usize, net: usize) {
    let (gpu, net) = (system.gpus[gpu], system.nets[net]);
    if paths.get(gpu, net).kind >= PathType::Phb || direct_access(system, paths, gpu, net, false) {
        return;
    }
    if let Some(cpu) = local_cpu(system, paths, gpu) {
        let (inward, outward) = (paths.over(net, cpu, gpu), paths.over(gpu, cpu, net));
        paths.set(net, gpu, inward);
        paths.set(gpu, net, outward);
    }
}

/// Whether a NIC reads (`read`) or writes a GPU's memory by itself.
fn direct_access(system: &System, paths: &Paths, gpu: usize, net: usize, read: bool) -> bool {
    let capable = matches!(system.nodes[gpu].kind, Kind::Gpu { gdr: true, .. })
        && system.net(net).is_some_and(|facts| facts.gdr);
    if !capable {
        return false;
    }
    // Before Ampere, reads compete with other PCIe traffic unless that goes over NVLink.
    let on_nvlink = |other: &usize| *other != gpu && paths.get(gpu, *other).kind == PathType::Nvl;
    if read && system.sm_of(gpu) < 80 && system.gpus.len() > 1 && !system.gpus.iter().any(on_nvlink) {
        return false;
    }
    let path = paths.get(gpu, net);
    let relay = || path.links.iter().map(|&(node, link)| system.nodes[node].links[link].to);
    let distance = if path.kind == PathType::Pxn {
        relay().find(|&node| system.gpus.contains(&node)).map_or(PathType::Dis, |g| paths.get(g, net).kind)
    } else {
        path.kind
    };
    distance <= PathType::P2c
}

fn host_of(system: &System, gpu: usize) -> Option<u32> {
    if let Kind::Gpu { host, .. } = system.nodes[gpu].kind { Some(host) } else { None }
}

/// The NIC that a GPU prefers for a channel: neighbours start at different ones.
fn preferred_net(system: &System, paths: &Paths, gpu: usize, channel: usize) -> Option<usize> {
    let nets = paths.local(system.gpus[gpu], &system.nets);
    let sharing = paths.local(system.nets[*nets.first()?], &system.gpus).len().max(1);
    let per_gpu = nets.len().div_ceil(sharing);
    let start = system.dev_of(system.gpus[gpu]) % sharing;
    let start = if nets.len().is_power_of_two() { mirrored(start, nets.len()) } else { start };
    Some(nets[(start + channel % per_gpu) % nets.len()])
}

/// The bits of `value` below `bound`, a power of two, in reverse.
fn mirrored(value: usize, bound: usize) -> usize {
    let bits = bound.trailing_zeros();
    (0..bits).filter(|bit| value >> bit & 1 == 1).map(|bit| 1 << (bits - 1 - bit)).sum()
}

fn preferred_nets(system: &System, paths: &Paths, gpu: usize) -> Vec<usize> {
    let mut nets: Vec<usize> = Vec::new();
    for channel in 0..MAX_CHANNELS {
        match preferred_net(system, paths, gpu, channel) {
            Some(net) if nets.first() != Some(&net) => nets.push(net),
            _ => break,
        }
    }
    nets
}

/// The GPU whose preferred NIC this is, among those nearest to it.
fn served_gpu(system: &System, paths: &Paths, net: usize) -> Option<usize> {
    let local = paths.local(system.nets[net], &system.gpus);
    let channels = 0..system.nets.len().clamp(1, MAX_CHANNELS);
    let mut tries = channels.flat_map(|channel| local.iter().map(move |&gpu| (channel, gpu)));
    tries.find(|&(channel, gpu)| preferred_net(system, paths, gpu, channel) == Some(net)).map(|(_, gpu)| gpu)
}
