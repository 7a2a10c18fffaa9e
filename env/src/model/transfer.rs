//! Transfers between pairs of ranks: send and receive, and all-to-all, which is many of them.
//!
//! NCCL never asks a tuner about these: it runs them as Simple over channels of their own, more of them
//! the more bytes a peer gets. So they have one time and no knobs.

use dynamiccl_spec::{Collective, Protocol};

use crate::model::constants::{Hop, Transfer};
use crate::model::fabric::Fabric;

const SIMPLE: usize = Protocol::Simple.id();
/// Nodes whose flows do not leave their rack.
const RACK: f64 = 4.0;

impl Fabric {
    /// The µs of a transfer of `bytes`: the message of a send and receive, what each rank holds for
    /// everybody together in an all-to-all, as nccl-tests counts them, and of uneven ones the busiest. Whatever
    /// is no all-to-all is taken as a message.
    pub fn transfer(&self, collective: Collective, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        match collective {
            Collective::AllToAll | Collective::AllToAllV => self.all_to_all(bytes),
            _ => self.send_receive(bytes),
        }
    }

    /// Every rank sends to the next and receives from the one before.
    fn send_receive(&self, bytes: f64) -> f64 {
        let constants = &self.transfer;
        let near = bytes / (self.intra_bandwidth * constants.share);
        if !self.crosses() {
            return self.start() + self.latency(&self.intra, bytes) + near.max(self.copied(bytes, 1.0));
        }
        // One pair crosses between two nodes, over one NIC.
        let nic = self.nics.max(1.0) * self.nic_share;
        let far = (bytes * nic / self.inter_bandwidth).max(bytes * nic / self.shaped_bandwidth);
        let on_host = 2.0 * bytes * self.local / self.host_bandwidth;
        let near = if self.local > 1.0 { near } else { 0.0 };
        let far = far * self.crowded() / constants.share;
        self.start() + self.far_latency(bytes) + near.max(far).max(on_host).max(self.copied(bytes, 1.0))
    }

    fn all_to_all(&self, bytes: f64) -> f64 {
        let constants = &self.transfer;
        let message = bytes / self.ranks;
        let (near_peers, far_peers) = (self.local - 1.0, self.ranks - self.local);
        let near = message * near_peers / (self.intra_bandwidth * constants.share);
        let near_hop = if self.local > 1.0 { self.latency(&self.intra, message) } else { 0.0 };
        let mut micros = self.start() + near_hop;
        // What a rank keeps is copied as well.
        let mut busy = near.max(self.copied(message, self.ranks));
        if self.crosses() {
            let sent = message * far_peers * self.local;
            let open = self.alltoall_share * constants.share;
            busy = busy.max(sent / (self.inter_bandwidth.min(self.shaped_bandwidth) * open));
            busy = busy.max(2.0 * sent / self.host_bandwidth);
            micros += self.far_latency(message);
            micros += constants.peer * (far_peers - 1.0).max(0.0) * self.inter.alpha[SIMPLE];
        }
        micros + constants.peer * (near_peers - 1.0).max(0.0) * self.intra.alpha[SIMPLE] + busy
    }

    fn start(&self) -> f64 {
        self.call.launch[SIMPLE] * self.transfer.launch
    }

    fn latency(&self, hop: &Hop, bytes: f64) -> f64 {
        let rendezvous = if bytes > hop.eager { hop.rendezvous } else { 0.0 };
        hop.alpha[SIMPLE] + hop.serial[SIMPLE] + rendezvous + self.wait
    }

    fn far_latency(&self, bytes: f64) -> f64 {
        self.latency(&self.inter, bytes) + (self.transfer.hop - 1.0).max(0.0) * self.inter.alpha[SIMPLE]
    }

    /// How much longer one flow per pair of nodes takes where paths between racks are shared: many flows
    /// spread over them, a lone one meets others on its own.
    fn crowded(&self) -> f64 {
        1.0 + self.transfer.lone_flow * (1.0 - RACK / self.nodes).max(0.0)
    }

    /// µs that the channels need to copy a message of `bytes` for each of `peers`: another channel is added
    /// for every part that a message is long.
    fn copied(&self, bytes: f64, peers: f64) -> f64 {
        let Transfer { part, channels, .. } = self.transfer;
        let most = channels.max(1.0);
        let used = ((bytes / part).clamp(1.0, most) * peers).min(most);
        bytes * peers / (self.arch.channel_rate[SIMPLE] * used)
    }
}
