//! The order of attempts: first other channels, then other patterns, farther paths, other NICs, and
//! only then a lower speed.

use super::climb::Climb;
use super::{Pattern, Shape};
use crate::cluster::{CpuArch, CpuVendor};
use crate::nccl::graph::PathType;

/// What is tried next.
pub(super) struct Attempt {
    pub(super) shape: Shape,
    /// Its speed, by its number in the list.
    pub(super) speed: usize,
    /// Steps left for all attempts together.
    pub(super) global: i64,
}

impl Attempt {
    pub(super) fn set_speed(&mut self, speeds: &[f32]) {
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

impl Climb<'_> {
    /// Changes one thing for the next attempt; false when all has been tried. Everything changed
    /// before goes back to where it started, so that each step covers all combinations below it.
    pub(super) fn next(&self, attempt: &mut Attempt, best: &Shape, left: i64, start: &Shape) -> bool {
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
}
