//! The order in which a walk tries GPUs and NICs: what is most promising first, so that a search that
//! runs out of time has already seen it.

use super::paths::Path;
use super::system::LinkKind;
use super::walk::Walk;
use super::{Pattern, routes::MAX_CHANNELS};
use crate::nccl::graph::PathType;

/// The GPUs that a walk may go to from one GPU.
pub(super) struct Order<'a> {
    walk: &'a Walk<'a>,
    from: usize,
    net: Option<usize>,
}

/// What speaks for a GPU; compared from the first to the last, smaller first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    inter_rate: i64,
    inter_pci: i64,
    inter_hops: i64,
    intra_rate: i64,
    intra_hops: i64,
    distance: usize,
    gpu: usize,
}

impl<'a> Order<'a> {
    /// From `from`, on the way back to `net` where there is one.
    pub(super) fn new(walk: &'a Walk<'a>, from: usize, net: Option<usize>) -> Self {
        Order { walk, from, net }
    }

    /// The GPUs not yet visited. Far from the last step (`early`) those near the NIC are spared.
    pub(super) fn sorted(&self, early: bool) -> Vec<usize> {
        let gpus = self.walk.system.gpus.len();
        if self.walk.system.nvswitch.is_some() {
            return self.neighbours();
        }
        let mut scores: Vec<Score> = (1..gpus)
            .map(|distance| ((self.from + distance) % gpus, distance))
            .filter(|&(gpu, _)| self.is_open(gpu))
            .map(|(gpu, distance)| self.score(gpu, distance))
            .collect();
        scores.sort_unstable();
        let alike = |a: &Score, b: &Score| a.intra_rate == b.intra_rate && a.intra_hops == b.intra_hops;
        let all_alike = scores.windows(2).all(|pair| alike(&pair[0], &pair[1]));
        if self.net.is_some() && early && all_alike {
            scores.reverse();
        }
        scores.iter().map(|score| score.gpu).collect()
    }

    /// Behind an NVSwitch all are alike; talking to few keeps its tables small.
    fn neighbours(&self) -> Vec<usize> {
        let gpus = self.walk.system.gpus.len();
        let before = (self.from + gpus - 1) % gpus;
        let after = (self.from + 1) % gpus;
        let mut next = match self.walk.shape.pattern {
            Pattern::Ring => vec![before, after],
            Pattern::BalancedTree => vec![after, before],
            _ => vec![after],
        };
        next.dedup();
        next.retain(|&gpu| gpu != self.from && self.is_open(gpu));
        next
    }

    /// Whether the walk can still go to a GPU.
    fn is_open(&self, gpu: usize) -> bool {
        let (walk, system) = (self.walk, &self.walk.system);
        let path = walk.routes.paths.get(system.gpus[self.from], system.gpus[gpu]);
        walk.used[gpu] & 1u64 << walk.shape.channels == 0 && !path.links.is_empty()
    }

    fn score(&self, gpu: usize, distance: usize) -> Score {
        let system = &self.walk.system;
        let paths = &self.walk.routes.paths;
        let node = system.gpus[gpu];
        let path = paths.get(system.gpus[self.from], node);
        let from_net: Option<&Path> = self.net.map(|net| paths.get(system.nets[net], node));
        Score {
            inter_rate: -from_net.map_or(0, |path| path.rate as i64),
            inter_pci: -from_net.map_or(0, |_| self.pci_rate(node)),
            inter_hops: from_net.map_or(0, |path| path.links.len() as i64),
            intra_rate: -(path.rate as i64),
            intra_hops: path.links.len() as i64,
            distance,
            gpu,
        }
    }

    /// Whole GB/s left on a GPU's PCIe port, in the worse direction.
    fn pci_rate(&self, node: usize) -> i64 {
        let links = &self.walk.system.nodes[node].links;
        let Some(up) = links.iter().position(|link| link.kind == LinkKind::Pci) else { return -1 };
        let back = self.walk.system.reverse(node, up);
        back.map_or(-1, |(n, l)| links[up].left.min(self.walk.system.nodes[n].links[l].left) as i64)
    }
}

/// The NICs to try for one GPU or for all, in order.
pub(super) fn nets(walk: &Walk, gpu: Option<usize>) -> Vec<usize> {
    let system = &walk.system;
    let gpus: Vec<usize> = gpu.map_or_else(|| (0..system.gpus.len()).collect(), |gpu| vec![gpu]);
    let mut nets: Vec<usize> = Vec::new();
    let mut add = |net: usize| {
        if !nets.contains(&net) {
            nets.push(net);
        }
    };
    if system.hosts > 1 {
        // Over several hosts, one NIC of each GPU before the second of any.
        for channel in 0..MAX_CHANNELS {
            gpus.iter().filter_map(|&gpu| walk.routes.nets(gpu).get(channel)).for_each(|&net| add(net));
        }
    } else {
        gpus.iter().flat_map(|&gpu| walk.routes.nets(gpu)).for_each(|&net| add(net));
    }
    for kind in PathType::ALL.into_iter().take_while(|&kind| kind <= walk.shape.type_inter) {
        for &gpu in &gpus {
            let node = system.gpus[gpu];
            let at_kind = |net: &usize| walk.routes.paths.get(node, system.nets[*net]).kind == kind;
            (0..system.nets.len().min(MAX_CHANNELS)).filter(at_kind).for_each(&mut add);
        }
    }
    nets
}
