//! The ladder of attempts around a single search: which patterns, path kinds and speeds are tried
//! after each other, and when it is enough.

use super::paths::Paths;
use super::routes::Routes;
use super::system::{LinkKind, System};
use super::walk::Walk;
use super::{Pattern, Shape, speeds};
use crate::cluster::{CpuArch, CpuVendor};
use crate::nccl::graph::PathType;

/// Steps of all attempts together.
const GLOBAL_TIME: i64 = 1 << 19;
/// Steps of one attempt.
const TIME: i64 = 1 << 14;
/// Steps of one attempt in which every channel must be like the first.
const SAME_TIME: i64 = 1 << 8;

/// What all searches on one system have in common.
pub(super) struct Climb<'a> {
    system: &'a System,
    routes: &'a Routes,
    inter: bool,
    sm: u32,
    speeds: &'static [f32],
    /// The most that one channel can move.
    max_rate: f32,
    /// The most that one GPU can move.
    total_rate: f32,
    intra: (PathType, PathType),
    inter_kinds: (PathType, PathType),
}

impl<'a> Climb<'a> {
    /// Prepares searches on a system.
    pub(super) fn new(system: &'a System, routes: &'a Routes, inter: bool) -> Self {
        let direct = Paths::direct(system);
        let ends = if inter { &system.nets } else { &system.gpus };
        let sm = system.sm();
        let several = system.gpus.len() > 1;
        let intra =
            if several { routes.paths.range(system, &system.gpus) } else { (PathType::Loc, PathType::Sys) };
        let mut inter_kinds = (PathType::Pix, PathType::Sys);
        if inter {
            inter_kinds = routes.paths.range(system, &system.nets);
        }
        if sm < 90 {
            // A balanced tree may have to come back by a farther way.
            inter_kinds.1 = PathType::Sys;
        }
        Climb {
            system,
            routes,
            inter,
            sm,
            speeds: speeds::list(sm, inter),
            max_rate: direct.best_rate(system, ends),
            total_rate: total_rate(system),
            intra,
            inter_kinds,
        }
    }

    /// Searches for one pattern.
    pub(super) fn run(&self, wanted: Shape) -> Shape {
        let shape = self.adapted(wanted);
        let mut walk = Walk::new(self.system, self.routes, self.inter, shape);
        self.find(&mut walk, shape);
        self.double(&mut walk.best);
        self.speed_up(&mut walk);
        let found = walk.best;
        if found.channels == 0 && !found.collnet && found.pattern != Pattern::Nvls {
            self.last_resort(found)
        } else {
            found
        }
    }

    /// What NCCL changes in a request because of the machine.
    fn adapted(&self, mut shape: Shape) -> Shape {
        shape.type_intra = self.intra.0;
        shape.type_inter = self.inter_kinds.0;
        if self.system.gpus.len() == 1 && shape.pattern != Pattern::Ring {
            shape.pattern = Pattern::Tree;
        }
        if shape.pattern == Pattern::Nvls && !self.inter {
            // On one node it must pull evenly from all GPUs.
            shape.min_channels = shape.max_channels;
        }
        if shape.pattern == Pattern::Ring && self.two_nvlink_islands() {
            // Trees serve two islands better, need two channels, and have as many as rings.
            shape.min_channels = 2;
        }
        shape
    }

    /// Whether NVLink joins the GPUs into two groups.
    fn two_nvlink_islands(&self) -> bool {
        let gpus = &self.system.gpus;
        let mut island: Vec<usize> = (0..gpus.len()).collect();
        for g in 0..gpus.len() {
            for p in g + 1..gpus.len() {
                if self.routes.paths.get(gpus[g], gpus[p]).kind == PathType::Nvl {
                    island[p] = island[g];
                }
            }
        }
        let size = |of: usize| island.iter().filter(|&&i| i == of).count();
        (0..gpus.len()).filter(|&g| size(g) > 1).count() == 2
    }

    /// Goes down the ladder until something is found that cannot be bettered.
    fn find(&self, walk: &mut Walk, shape: Shape) {
        let mut attempt = Attempt { shape, speed: self.first_speed(&shape), global: GLOBAL_TIME };
        attempt.set_speed(self.speeds);
        loop {
            let time = match attempt.shape {
                Shape { same_channels: true, .. } => SAME_TIME,
                _ => TIME,
            };
            attempt.global -= time;
            let left = walk.search(&mut attempt.shape, time);
            let enough = walk.best.channels as f32 * walk.best.bw_inter >= self.total_rate;
            if left == -1 || enough || !self.next(&mut attempt, &walk.best, left, &shape) {
                return;
            }
        }
    }

    fn first_speed(&self, shape: &Shape) -> usize {
        let gpus = self.system.gpus.len() as f32;
        // Only a ring has to come back to where it started.
        let spare = if gpus > 1.0 && shape.pattern != Pattern::Ring { gpus / (gpus - 1.0) } else { 1.0 };
        let total = self.total_rate * spare;
        let fits = |speed: f32| speed <= self.max_rate && speed * shape.min_channels as f32 <= total;
        self.speeds.iter().position(|&speed| fits(speed)).unwrap_or(self.speeds.len() - 1)
    }

    /// Changes one thing for the next attempt; false when all has been tried. Everything changed
    /// before goes back to where it started, so that each step covers all combinations below it.
    fn next(&self, attempt: &mut Attempt, best: &Shape, left: i64, start: &Shape) -> bool {
        let tried = &mut attempt.shape;
        let over_amd =
            self.system.cpu() == Some((CpuArch::X86, CpuVendor::Amd)) && tried.type_intra == PathType::Sys;
        if tried.same_channels && !over_amd {
            tried.same_channels = false;
            return true;
        }
        tried.same_channels = start.same_channels;
        attempt.global += left;
        if attempt.global < 0 && best.channels > 0 {
            return false;
        }
        if self.sm >= 90 && tried.pattern == Pattern::BalancedTree {
            tried.pattern = Pattern::Tree;
            return true;
        }
        tried.pattern = best.pattern;
        self.next_kind(tried, best) || self.next_nic(tried, best) || attempt.slower(self.speeds, best)
    }

    /// Allows a farther path, inside the node first.
    fn next_kind(&self, tried: &mut Shape, best: &Shape) -> bool {
        let none = best.channels == 0;
        let farthest = if self.inter { tried.type_inter } else { self.intra.1 };
        if tried.type_intra < farthest && (none || tried.type_intra < best.type_intra) {
            tried.type_intra = tried.type_intra.farther().unwrap_or(PathType::Dis);
            if tried.type_intra < PathType::Dis {
                return true;
            }
        }
        tried.type_intra = self.intra.0;
        let near = none || tried.type_inter < best.type_inter || tried.type_inter < PathType::Pxn;
        if self.inter && tried.type_inter < self.inter_kinds.1 && near {
            tried.type_inter = tried.type_inter.farther().unwrap_or(PathType::Dis);
            if tried.type_inter < PathType::Dis {
                return true;
            }
        }
        tried.type_inter = self.inter_kinds.0;
        false
    }

    /// Allows to leave by another NIC.
    fn next_nic(&self, tried: &mut Shape, best: &Shape) -> bool {
        let crossing = matches!(best.pattern, Pattern::Ring | Pattern::BalancedTree);
        tried.cross_nic = crossing && !tried.cross_nic && self.system.nets.len() > 1;
        tried.cross_nic
    }

    /// Two channels of half the speed use a GPU better than one fast one.
    fn double(&self, found: &mut Shape) {
        let enough = self.sm > 80 && found.bw_intra < 50.0 && found.channels > 4;
        if found.channels == 0 || found.pattern == Pattern::Nvls || found.bw_intra < 25.0 || enough {
            return;
        }
        let channels = (found.channels * 2).min(found.max_channels);
        let share = channels.div_ceil(found.channels) as f32;
        found.bw_intra /= share;
        found.bw_inter /= share;
        found.channels = channels;
    }

    /// Tries whether the channels found could be faster.
    fn speed_up(&self, walk: &mut Walk) {
        let best = walk.best;
        let last = self.speeds.len() - 1;
        let mut speed = self.speeds.iter().position(|&speed| speed <= best.bw_inter).unwrap_or(last);
        let mut tried = Shape {
            bw_intra: self.speeds[speed],
            bw_inter: self.speeds[speed],
            min_channels: best.channels,
            ..best
        };
        let mut left = -1;
        while left != 0 && speed > 0 {
            let best = walk.best;
            if best.pattern == Pattern::Ring {
                tried.bw_intra = self.speeds[speed - 1];
                tried.bw_inter = self.speeds[speed - 1];
            } else if best.pattern == Pattern::Nvls
                && tried.bw_inter == best.bw_inter
                && tried.bw_inter < tried.bw_intra * 2.0
            {
                tried.min_channels = best.channels;
                tried.max_channels = best.channels;
                tried.bw_inter = self.speeds[speed - 1];
            } else if tried.bw_intra == best.bw_intra && tried.bw_intra < tried.bw_inter * 2.0 {
                tried.bw_intra = self.speeds[speed - 1];
            } else {
                return;
            }
            speed -= 1;
            let time = if tried.same_channels { SAME_TIME } else { TIME };
            left = walk.search(&mut tried, time);
        }
    }

    /// What NCCL uses when it finds nothing: the GPUs as they are listed.
    fn last_resort(&self, shape: Shape) -> Shape {
        let (bw_inter, type_inter) =
            if self.system.nets.is_empty() { (0.0, PathType::Dis) } else { (0.1, PathType::Sys) };
        Shape { channels: 1, bw_intra: 0.1, type_intra: PathType::Sys, bw_inter, type_inter, ..shape }
    }
}

/// What is tried next.
struct Attempt {
    shape: Shape,
    speed: usize,
    global: i64,
}

impl Attempt {
    fn set_speed(&mut self, speeds: &[f32]) {
        self.shape.bw_intra = speeds[self.speed];
        self.shape.bw_inter = speeds[self.speed];
    }

    /// The next lower speed, unless it is below half of what was found.
    fn slower(&mut self, speeds: &[f32], best: &Shape) -> bool {
        let Some(&next) = speeds.get(self.speed + 1) else { return false };
        if best.channels > 0 && next / best.bw_inter <= 0.49 {
            return false;
        }
        self.speed += 1;
        self.set_speed(speeds);
        true
    }
}

/// The most that any GPU moves: over all its NVLinks, or over its PCIe port.
fn total_rate(system: &System) -> f32 {
    let rate = |gpu: usize, kind: LinkKind| -> f32 {
        system.nodes[gpu].links.iter().filter(|link| link.kind == kind).map(|link| link.left).sum()
    };
    let of_gpu = |&gpu: &usize| rate(gpu, LinkKind::NvLink).max(rate(gpu, LinkKind::Pci));
    system.gpus.iter().map(of_gpu).fold(0.0, f32::max)
}
