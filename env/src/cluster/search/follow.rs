//! Taking bandwidth from the links of a path, and giving it back.

use super::Pattern;
use super::paths::Path;
use super::system::{Kind, LinkKind};
use super::walk::{Return, Walk};
use crate::cluster::CpuArch;
use crate::nccl::graph::PathType;

impl Walk<'_> {
    pub(super) fn follow(&mut self, from: usize, to: usize, share: f32) -> bool {
        self.follow_share(from, to, share, 1.0)
    }

    /// Takes (or, with a negative `sign`, gives back) a channel's bandwidth on the path between two
    /// devices; false, and nothing taken, where there is not enough.
    pub(super) fn follow_share(&mut self, from: usize, to: usize, sign: f32, share: f32) -> bool {
        let is_inside = |n: usize| matches!(self.system.nodes[n].kind, Kind::Gpu { .. } | Kind::NvSwitch);
        let (rate, farthest) = if is_inside(from) && is_inside(to) {
            (self.shape.bw_intra, self.shape.type_intra)
        } else {
            (self.shape.bw_inter * share, self.shape.type_inter)
        };
        let path = self.routes.paths.get(from, to);
        if path.kind >= PathType::Dis {
            return false;
        }
        if sign == 1.0 {
            let two_way = matches!(self.shape.pattern, Pattern::BalancedTree | Pattern::Tree);
            let back = self.routes.paths.get(to, from).kind;
            if path.kind > farthest || (two_way && back > farthest) {
                return false;
            }
        }
        let rate = rate * sign;
        let taken = self.take(path, from, path.links.len(), rate);
        if taken < path.links.len() {
            self.take(path, from, taken, -rate);
            return false;
        }
        // NCCL counts the step from a GPU to its board, too, and loses fractions.
        let boards = [from, to].into_iter().filter(|&n| from != to && self.is_gpu(n)).count();
        let hops = (path.links.len() + boards) as f32;
        self.shape.hops = (self.shape.hops as f32 + sign * hops) as i64;
        true
    }

    /// Takes bandwidth on the first links of a path; says on how many there was enough.
    fn take(&mut self, path: &Path, start: usize, links: usize, rate: f32) -> usize {
        let from_gpu = self.is_gpu(start);
        // Intel's root complex splits what one GPU sends to another into small packets.
        let split = path.kind == PathType::Phb && from_gpu && path.over_intel;
        let pci_rate = if split { rate * 6.0 / 5.0 } else { rate };
        for (done, &(node, link)) in path.links[..links].iter().enumerate() {
            let forward = &self.system.nodes[node].links[link];
            let wanted = if forward.kind == LinkKind::Pci { pci_rate } else { rate };
            let back = self.answer(node, link, wanted, from_gpu);
            let short = forward.left < wanted
                || back.is_some_and(|(n, l, wanted)| self.system.nodes[n].links[l].left < wanted);
            if short {
                return done;
            }
            self.system.nodes[node].links[link].take(wanted);
            if let Some((n, l, wanted)) = back {
                self.system.nodes[n].links[l].take(wanted);
            }
        }
        links
    }

    /// What a link needs in the other direction, too: old GPUs answer what they receive.
    fn answer(&self, node: usize, link: usize, rate: f32, from_gpu: bool) -> Option<(usize, usize, f32)> {
        let (to, kind) = (self.system.nodes[node].links[link].to, self.system.nodes[node].links[link].kind);
        let share = match self.system.nodes[to].kind {
            Kind::Gpu { sm, .. } if sm < 80 && !from_gpu => rate / 8.0,
            Kind::Cpu { arch: CpuArch::Power, .. } if kind == LinkKind::NvLink => rate,
            _ => return None,
        };
        let (n, l) = self.system.reverse(node, link)?;
        Some((n, l, share))
    }

    /// Every GPU talks to the NVSwitch, the head twice as much.
    pub(super) fn reach_all_over_switch(&mut self, head: usize) {
        let Some(switch) = self.system.nvswitch else { return };
        let gpus = self.system.gpus.clone();
        let share = |gpu: usize| if gpu == head { 2.0 } else { 1.0 };
        let down = (0..gpus.len()).take_while(|&g| self.follow(switch, gpus[g], share(g))).count();
        if down == gpus.len() {
            let up = (0..gpus.len()).take_while(|&g| self.follow(gpus[g], switch, share(g))).count();
            if up == gpus.len() {
                self.at_gpu(head, gpus.len(), Return::END);
            }
            for g in (0..up).rev() {
                self.follow(gpus[g], switch, -share(g));
            }
        }
        for g in (0..down).rev() {
            self.follow(switch, gpus[g], -share(g));
        }
    }

    /// The head exchanges its part with every other GPU.
    pub(super) fn reach_all_directly(&mut self, head: usize) {
        let gpus = self.system.gpus.clone();
        let share = 1.0 / (gpus.len() as f32 - 1.0);
        let out = (0..gpus.len()).take_while(|&g| self.follow(gpus[head], gpus[g], share)).count();
        let mut back = 0;
        if out == gpus.len() {
            back = (0..gpus.len()).take_while(|&g| self.follow(gpus[g], gpus[head], share)).count();
            if back == gpus.len() {
                self.at_gpu(head, gpus.len(), Return::END);
            }
        }
        for g in (0..back).rev() {
            self.follow(gpus[g], gpus[head], -share);
        }
        for g in (0..out).rev() {
            self.follow(gpus[head], gpus[g], -share);
        }
    }
}
