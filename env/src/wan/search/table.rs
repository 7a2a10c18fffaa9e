//! Every hop that a ring could have, for the links of a moment.

use crate::wan::arrangement::Work;
use crate::wan::clock::Hop;
use crate::wan::traffic::Sample;
use crate::wan::{Ring, Setting};

/// Every hop from a GPU to another.
#[derive(Debug, Clone, Default)]
pub struct Table {
    gpus: usize,
    hops: Vec<Hop>,
    /// ms of a chunk on the slowest link of each.
    slowest: Vec<f64>,
    ring: Vec<Hop>,
}

impl Table {
    /// Lays the hops out, with the route that `route` says for each pair.
    pub fn lay(&mut self, setting: &Setting, sample: &Sample, route: impl Fn(usize, usize) -> usize) {
        let network = &setting.network;
        self.gpus = network.gpus();
        self.hops.clear();
        for from in 0..self.gpus {
            for to in 0..self.gpus {
                self.hops.push(if from == to {
                    Hop::one(0.0, 0.0)
                } else if network.home(from) == network.home(to) {
                    setting.inside(sample, from, to)
                } else {
                    setting.crossing(sample, from, to, route(from, to))
                });
            }
        }
        self.slowest.clear();
        self.slowest.extend(self.hops.iter().map(Hop::slowest));
    }

    /// ms of a chunk from one GPU to another.
    #[inline]
    pub fn slowest(&self, from: u16, to: u16) -> f64 {
        self.slowest[usize::from(from) * self.gpus + usize::from(to)]
    }

    /// ms of a chunk on the slowest hop of a ring.
    pub fn slowest_of(&self, ring: &Ring) -> f64 {
        ring.hops().fold(0.0, |slowest, (from, to)| self.slowest[from * self.gpus + to].max(slowest))
    }

    /// ms of a collective on a ring.
    pub fn time(&mut self, ring: &Ring, setting: &Setting, work: &mut Work) -> f64 {
        let Table { gpus, hops, ring: laid, .. } = self;
        laid.clear();
        laid.extend(ring.hops().map(|(from, to)| hops[from * *gpus + to]));
        work.clock(laid, setting.schedule.chunks())
    }
}
