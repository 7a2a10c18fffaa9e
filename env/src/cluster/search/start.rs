//! Where a channel starts: at a GPU, or at a NIC and the GPUs nearest to it.

use super::Pattern;
use super::system::Kind;
use super::walk::{Next, Return, Walk};

impl Walk<'_> {
    /// Starts the next channel.
    pub(super) fn channel(&mut self) {
        let last = self.gpus() - 1;
        let ring = self.shape.pattern == Pattern::Ring;
        let to_net = self.inter.then_some(if ring { last } else { 0 });
        let to_first = (!self.inter && ring).then_some(last);
        let back = Return { to_net, to_first, next: Next::Any };
        if self.inter {
            self.start_at_nets(back);
        } else if self.shape.pattern == Pattern::Nvls {
            self.step_to(None, self.shape.channels, 0, back);
        } else {
            self.start_at_gpus(back);
        }
    }

    /// Starts a channel at a GPU.
    fn start_at_gpus(&mut self, back: Return) {
        if self.shape.channels == 0 {
            self.step_to(None, 0, 0, Return { next: Next::Listed, ..back });
        } else {
            self.step_to(None, self.replayed(0), 0, Return { next: Next::Replayed, ..back });
        }
        if !self.shape.same_channels || self.shape.channels == 0 {
            for gpu in 0..self.gpus() {
                self.step_to(None, gpu, 0, back);
            }
        }
    }

    /// Starts a channel at each NIC in turn.
    fn start_at_nets(&mut self, back: Return) {
        // NCCL counts whole GB/s here.
        let rate = self.shape.bw_inter.trunc();
        let nets = self.nets_to_try(None);
        let heads_only = matches!(self.shape.pattern, Pattern::Nvls | Pattern::CollnetDirect);
        for i in 0..nets.len() {
            let channel = self.shape.channels;
            let net = nets[(channel + i) % nets.len()];
            let Some(facts) = self.system.net(self.system.nets[net]).cloned() else { continue };
            let paired = self.shape.pattern == Pattern::Ring && self.shape.cross_nic && channel % 2 == 1;
            if (self.shape.collnet && !facts.collnet)
                || facts.left < rate
                || (paired && net != self.ends[channel - 1][1])
            {
                continue;
            }
            self.ends[channel][0] = net;
            self.shape.latency_inter = facts.latency;
            self.take_port(facts.guid, facts.port, -rate);
            let found =
                if heads_only { self.head(net, nets.len(), back) } else { self.start_at_net(net, back) };
            self.take_port(facts.guid, facts.port, rate);
            if heads_only && found {
                break;
            }
        }
    }

    /// Adds to what is left of an adapter's port.
    fn take_port(&mut self, guid: u64, port: i64, rate: f32) {
        for &node in &self.system.nets {
            if let Kind::Net(facts) = &mut self.system.nodes[node].kind
                && facts.guid == guid
                && facts.port == port
            {
                facts.left += rate;
            }
        }
    }

    /// Makes the GPU of a NIC the head of the next channel, unless it already is one.
    fn head(&mut self, net: usize, nets: usize, back: Return) -> bool {
        let channels = self.shape.channels;
        let gpus = self.gpus();
        let is_head = |gpu: usize| (0..channels).any(|c| self.order[c * gpus] == gpu);
        let Some(gpu) = self.routes.gpu_of[net].filter(|&gpu| channels < nets && !is_head(gpu)) else {
            return false;
        };
        self.step_to(Some(self.system.nets[net]), gpu, 0, back);
        true
    }

    /// Starts a channel at one NIC, at the GPUs nearest to it.
    fn start_at_net(&mut self, net: usize, back: Return) -> bool {
        let from = Some(self.system.nets[net]);
        if self.shape.channels > 0 && self.shape.same_channels {
            self.step_to(from, self.replayed(0), 0, Return { next: Next::Replayed, ..back });
            return true;
        }
        if self.shape.channels == 0 && self.system.nvswitch.is_none() {
            self.try_listed_order(from, back);
        }
        let served = self.routes.gpu_of[net];
        if let Some(gpu) = served {
            self.step_to(from, gpu, 0, back);
        }
        for gpu in self.routes.paths.local(self.system.nets[net], &self.system.gpus) {
            if Some(gpu) != served {
                self.step_to(from, gpu, 0, back);
            }
        }
        true
    }

    /// Sets a reference with the plain order, which has a little time of its own.
    fn try_listed_order(&mut self, from: Option<usize>, back: Return) {
        let time = std::mem::replace(&mut self.time, 1 << 10);
        self.step_to(from, 0, 0, Return { next: Next::Listed, ..back });
        if self.time != -1 {
            self.time = time;
        }
    }
}
