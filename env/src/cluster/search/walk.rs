//! Placing channels one after the other until no more fit, or until patience runs out.
//!
//! A channel is a walk over all GPUs that takes its bandwidth from every link on the way. The order in
//! which walks are tried, and the steps after which NCCL gives up, decide what it finds on large
//! machines; so both are NCCL's.

use std::rc::Rc;

use super::order::Order;
use super::routes::Routes;
use super::system::{Kind, System};
use super::{Pattern, Shape};
use crate::nccl::graph::PathType;

/// Which GPU comes next in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Any, the most promising first.
    Any,
    /// The next in the system's order.
    Listed,
    /// The same as in the channel before.
    Replayed,
}

/// Where a walk has to come back to, by the step at which it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Return {
    pub(super) to_net: Option<usize>,
    pub(super) to_first: Option<usize>,
    pub(super) next: Next,
}

/// The state of one search.
pub(super) struct Walk<'a> {
    pub(super) system: System,
    pub(super) routes: &'a Routes,
    /// Whether the communicator spans several nodes.
    pub(super) inter: bool,
    /// What is being tried.
    pub(super) shape: Shape,
    /// The best found so far.
    pub(super) best: Shape,
    /// Steps left; −1 once nothing better can be found.
    pub(super) time: i64,
    /// GPUs by channel and step.
    pub(super) order: Vec<usize>,
    /// First and last NIC by channel.
    pub(super) ends: Vec<[usize; 2]>,
    /// Channels that already pass a GPU, one bit each.
    pub(super) used: Vec<u64>,
    /// NICs to try, by path kind and GPU; the last GPU stands for all.
    nets: Vec<Option<Rc<[usize]>>>,
}

impl Return {
    /// The end of a channel: nowhere to come back to.
    pub(super) const END: Return = Return { to_net: None, to_first: None, next: Next::Any };
}

impl<'a> Walk<'a> {
    /// A search that has found nothing yet.
    pub(super) fn new(system: &System, routes: &'a Routes, inter: bool, shape: Shape) -> Walk<'a> {
        let gpus = system.gpus.len();
        Walk {
            system: system.clone(),
            routes,
            inter,
            shape,
            best: shape,
            time: 0,
            order: vec![0; gpus * (super::routes::MAX_CHANNELS + 1)],
            ends: vec![[usize::MAX; 2]; super::routes::MAX_CHANNELS + 1],
            used: vec![0; gpus],
            nets: vec![None; (gpus + 1) * PathType::ALL.len()],
        }
    }

    /// Searches with `shape` for `time` steps and keeps what is better than the best. Says how much
    /// time is left, −1 if nothing better can be found.
    pub(super) fn search(&mut self, shape: &mut Shape, time: i64) -> i64 {
        self.shape = Shape { channels: 0, ..*shape };
        self.time = time;
        self.channel();
        // Going back loses fractions of hops; NCCL goes on with what is left.
        shape.hops = self.shape.hops;
        self.time
    }

    pub(super) fn gpus(&self) -> usize {
        self.system.gpus.len()
    }

    pub(super) fn is_gpu(&self, node: usize) -> bool {
        matches!(self.system.nodes[node].kind, Kind::Gpu { .. })
    }

    /// Goes to a GPU, on from there, and back.
    pub(super) fn step_to(&mut self, from: Option<usize>, gpu: usize, step: usize, back: Return) {
        let node = self.system.gpus[gpu];
        let flag = 1u64 << self.shape.channels;
        if from.is_none_or(|from| self.follow(from, node, 1.0)) {
            self.used[gpu] ^= flag;
            self.at_gpu(gpu, step, back);
            self.used[gpu] ^= flag;
            if let Some(from) = from {
                self.follow(from, node, -1.0);
            }
        }
    }

    /// Goes on from a GPU.
    pub(super) fn at_gpu(&mut self, gpu: usize, step: usize, back: Return) {
        if self.time <= 0 {
            return;
        }
        self.time -= 1;
        let gpus = self.gpus();
        if step == gpus {
            return self.close_channel();
        }
        self.order[self.shape.channels * gpus + step] = gpu;
        if back.to_net == Some(step) {
            self.back_to_net(gpu, step, back);
        } else if self.shape.pattern == Pattern::Nvls {
            self.reach_all_over_switch(gpu);
        } else if self.shape.pattern == Pattern::CollnetDirect {
            self.reach_all_directly(gpu);
        } else if step < gpus - 1 {
            for next in self.next_gpus(gpu, step, back) {
                self.step_to(Some(self.system.gpus[gpu]), next, step + 1, back);
            }
        } else if back.to_first == Some(step) {
            let first = self.order[self.shape.channels * gpus];
            let (from, to) = (self.system.gpus[gpu], self.system.gpus[first]);
            if self.follow(from, to, 1.0) {
                self.at_gpu(first, step + 1, Return { to_first: None, ..back });
                self.follow(from, to, -1.0);
            }
        } else {
            self.at_gpu(gpu, gpus, Return::END);
        }
    }

    /// Leaves for the network, and goes on to the remaining GPUs.
    fn back_to_net(&mut self, gpu: usize, step: usize, back: Return) {
        let from = self.system.gpus[gpu];
        let balanced = self.shape.pattern == Pattern::BalancedTree;
        // A balanced tree puts half of its traffic on each of the first two GPUs.
        let share = if balanced { 0.5 } else { 1.0 };
        let to_net = (balanced && step == 0).then_some(1);
        let nets = self.nets_to_try(Some(gpu));
        for &net in nets.iter() {
            let channel = self.shape.channels;
            let to = self.system.nets[net];
            if self.may_leave_by(net, step) && self.follow_share(from, to, 1.0, share) {
                self.ends[channel][1] = net;
                self.at_gpu(gpu, step, Return { to_net, ..back });
                self.follow_share(from, to, -1.0, share);
            }
        }
    }

    /// Whether a walk that came in by its first NIC may leave by this one.
    fn may_leave_by(&self, net: usize, step: usize) -> bool {
        let channel = self.shape.channels;
        let start = self.ends[channel][0];
        let crossing = self.shape.pattern == Pattern::Ring && self.shape.cross_nic;
        let pattern_allows = match self.shape.pattern {
            Pattern::Tree => net == start,
            Pattern::BalancedTree => step == 0 || net == self.ends[channel][1],
            Pattern::Ring if crossing => channel.is_multiple_of(2) || net == self.ends[channel - 1][0],
            _ => true,
        };
        let port = |net: usize| self.system.net(self.system.nets[net]).map(|facts| (facts.guid, facts.port));
        pattern_allows && (self.shape.cross_nic || port(net) == port(start))
    }

    fn close_channel(&mut self) {
        self.shape.channels += 1;
        if self.shape.beats(&self.best, self.gpus()) {
            self.best = self.shape;
            if self.shape.channels == self.shape.max_channels {
                self.time = -1;
            }
        }
        if self.shape.channels < self.shape.max_channels {
            self.channel();
        }
        self.shape.channels -= 1;
    }

    /// The GPU at a step of the channel before.
    pub(super) fn replayed(&self, step: usize) -> usize {
        self.order[(self.shape.channels - 1) * self.gpus() + step]
    }

    fn next_gpus(&self, gpu: usize, step: usize, back: Return) -> Vec<usize> {
        match back.next {
            Next::Listed => vec![step + 1],
            Next::Replayed => vec![self.replayed(step + 1)],
            Next::Any => {
                let net = back.to_net.map(|_| self.ends[self.shape.channels][0]);
                Order::new(self, gpu, net).sorted(back.to_net.is_some_and(|at| at != step + 1))
            }
        }
    }

    /// NICs to start from (no GPU) or to leave by: preferred ones first, then all that are near enough.
    pub(super) fn nets_to_try(&mut self, gpu: Option<usize>) -> Rc<[usize]> {
        let slot = self.shape.type_inter as usize * (self.gpus() + 1) + gpu.unwrap_or(self.gpus());
        if let Some(nets) = &self.nets[slot] {
            return nets.clone();
        }
        let nets: Rc<[usize]> = super::order::nets(self, gpu).into();
        self.nets[slot] = Some(nets.clone());
        nets
    }
}
