//! The best path between any two devices, as NCCL ranks paths: nearer kind first, then more
//! bandwidth, then fewer links.

use super::system::{Kind, LOCAL, LinkKind, System};
use crate::cluster::{CpuArch, CpuVendor};
use crate::nccl::graph::PathType;

/// A path from one device to another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    /// Its links, each as (device, number of the link there).
    pub(super) links: Vec<(usize, usize)>,
    /// GB/s of its slowest link.
    pub(super) rate: f32,
    /// Its farthest part.
    pub(super) kind: PathType,
    /// Whether it passes an Intel CPU.
    pub(super) over_intel: bool,
}

static NO_PATH: Path = Path { links: Vec::new(), rate: 0.0, kind: PathType::Dis, over_intel: false };

/// The paths to every GPU, NIC, CPU and NVSwitch.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// By destination, then by origin; empty for destinations that nobody asks for.
    to: Vec<Vec<Path>>,
}

impl Paths {
    /// The direct paths of a system, before any rule about who may talk to whom.
    pub(super) fn direct(system: &System) -> Paths {
        let mut paths = Paths { to: vec![Vec::new(); system.nodes.len()] };
        let ends = [&system.cpus, &system.gpus, &system.nets].into_iter().flatten();
        for &end in ends.chain(system.nvswitch.as_ref()) {
            paths.to[end] = all_paths_to(system, end);
        }
        paths
    }

    /// The path from one device to another.
    pub(super) fn get(&self, from: usize, to: usize) -> &Path {
        self.to[to].get(from).unwrap_or(&NO_PATH)
    }

    /// Replaces a path.
    pub(super) fn set(&mut self, from: usize, to: usize, path: Path) {
        if let Some(old) = self.to[to].get_mut(from) {
            *old = path;
        }
    }

    /// Makes a path no farther than `kind`.
    pub(super) fn nearer(&mut self, from: usize, to: usize, kind: PathType) {
        if let Some(path) = self.to[to].get_mut(from) {
            path.kind = path.kind.min(kind);
        }
    }

    /// The path over an intermediate device.
    pub(super) fn over(&self, from: usize, middle: usize, to: usize) -> Path {
        let (first, second) = (self.get(from, middle), self.get(middle, to));
        Path {
            links: [first.links.as_slice(), &second.links].concat(),
            rate: first.rate.min(second.rate),
            kind: merged(first.kind, second.kind),
            over_intel: first.over_intel || second.over_intel,
        }
    }

    /// Those of `ends` that a device reaches best, by their position in `ends`.
    pub(super) fn local(&self, from: usize, ends: &[usize]) -> Vec<usize> {
        let (mut rate, mut kind) = (0.0, PathType::Dis);
        let mut best = Vec::new();
        for (index, &end) in ends.iter().enumerate() {
            let path = self.get(from, end);
            if path.rate > rate || (path.rate == rate && path.kind < kind) {
                (rate, kind) = (path.rate, path.kind);
                best.clear();
            }
            if path.rate == rate && path.kind == kind {
                best.push(index);
            }
        }
        best
    }

    /// The nearest and the farthest kind of path from any GPU to any of `ends` but itself.
    pub(super) fn range(&self, system: &System, ends: &[usize]) -> (PathType, PathType) {
        let (mut nearest, mut farthest) = (PathType::Sys, PathType::Loc);
        for &gpu in &system.gpus {
            for &end in ends.iter().filter(|&&end| end != gpu) {
                let kind = self.get(gpu, end).kind;
                nearest = nearest.min(kind);
                farthest = farthest.max(kind);
            }
        }
        (nearest, farthest)
    }

    /// The most bandwidth from any GPU to any of `ends` but itself.
    pub(super) fn best_rate(&self, system: &System, ends: &[usize]) -> f32 {
        let pairs = system.gpus.iter().flat_map(|&gpu| ends.iter().map(move |&end| (gpu, end)));
        let rates =
            pairs.map(|(gpu, end)| self.get(gpu, end)).filter(|p| !p.links.is_empty()).map(|p| p.rate);
        rates.fold(0.0, f32::max)
    }
}

/// A chip-to-chip link and the CPU's bridge together have a name of their own.
pub(super) fn merged(a: PathType, b: PathType) -> PathType {
    match (a.min(b), a.max(b)) {
        (PathType::C2c, PathType::Phb) => PathType::P2c,
        (_, farther) => farther,
    }
}

/// The best path from every device to `end`, found in waves around it.
fn all_paths_to(system: &System, end: usize) -> Vec<Path> {
    let mut paths = vec![NO_PATH.clone(); system.nodes.len()];
    paths[end] = Path { links: Vec::new(), rate: LOCAL, kind: PathType::Loc, over_intel: false };
    let mut wave = vec![end];
    while !wave.is_empty() {
        let mut next = Vec::new();
        for &node in &wave {
            for link in 0..system.nodes[node].links.len() {
                if let Some(path) = extended(system, end, node, link, &paths) {
                    let reached = system.nodes[node].links[link].to;
                    paths[reached] = path;
                    if !next.contains(&reached) {
                        next.push(reached);
                    }
                }
            }
        }
        wave = next;
    }
    paths
}

/// The path to `end` over `node` from the other side of one of its links, if it is better than the
/// one known so far.
fn extended(system: &System, end: usize, node: usize, link: usize, paths: &[Path]) -> Option<Path> {
    let path = &paths[node];
    let (from, kind) = (&system.nodes[node], system.nodes[node].links[link].kind);
    let reached = from.links[link].to;
    let is_gpu = |n: usize| matches!(system.nodes[n].kind, Kind::Gpu { .. });
    // Data only passes through a GPU from one NVLink to another, and only through one.
    let passes = kind == LinkKind::NvLink && is_gpu(reached) && path.links.len() <= 1;
    if node != end && is_gpu(node) && !passes {
        return None;
    }
    let known = &paths[reached];
    let kind = kind_over(system, node, link, path);
    let rate = path.rate.min(from.links[link].left);
    let length = path.links.len() + 1;
    let better = kind < known.kind
        || (kind == known.kind && known.rate < rate)
        || (kind == known.kind && known.rate == rate && known.links.len() > length);
    if !better {
        return None;
    }
    let mut links = Vec::with_capacity(length);
    links.push(system.reverse(node, link)?);
    links.extend_from_slice(&path.links);
    Some(Path { links, rate, kind, over_intel: path.over_intel || is_intel(system, node) })
}

fn is_intel(system: &System, node: usize) -> bool {
    matches!(system.nodes[node].kind, Kind::Cpu { arch: CpuArch::X86, vendor: CpuVendor::Intel })
}

/// The kind of a path that goes on over a link.
fn kind_over(system: &System, node: usize, link: usize, path: &Path) -> PathType {
    let (here, there) = (&system.nodes[node].kind, &system.nodes[system.nodes[node].links[link].to].kind);
    let kind = match system.nodes[node].links[link].kind {
        _ if matches!((here, there), (Kind::Pci, Kind::Pci)) => PathType::Pxb,
        LinkKind::Pci if matches!(here, Kind::Cpu { .. }) || matches!(there, Kind::Cpu { .. }) => {
            PathType::Phb
        }
        LinkKind::NvLink
            if matches!(here, Kind::Gpu { .. }) && path.kind == PathType::Nvl && path.links.len() == 1 =>
        {
            PathType::Nvb
        }
        LinkKind::Local | LinkKind::Network => PathType::Loc,
        LinkKind::NvLink => PathType::Nvl,
        LinkKind::Chip => PathType::C2c,
        LinkKind::Pci => PathType::Pix,
        LinkKind::Sockets => PathType::Sys,
    };
    kind.max(path.kind)
}
