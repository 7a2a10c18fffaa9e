//! Every ring that could still be the best: GPU after GPU, given up once its slowest hop alone takes too long.

use super::table::Table;
use crate::wan::arrangement::Work;
use crate::wan::{Network, Ring, Setting};

/// The best ring and its ms; of equals the first.
pub fn best(setting: &Setting, table: &mut Table, work: &mut Work) -> (Ring, f64) {
    let mut best = Ring::usual(&setting.network);
    let mut ms = table.time(&best, setting, work);
    let total = setting.schedule.total();
    // A hop carries every message of a collective, one after the other.
    let mut walk = Walk::new(&setting.network);
    walk.begin(&mut |ring, place| {
        let (to, from) = (ring.0[place], ring.0[place.saturating_sub(1)]);
        if place > 0 && total * table.slowest(from, to) >= ms {
            return false;
        }
        if place + 1 < ring.0.len() {
            return true;
        }
        if total * table.slowest(to, ring.0[0]) < ms {
            let found = table.time(ring, setting, work);
            if found < ms {
                (ms, best) = (found, ring.clone());
            }
        }
        true
    });
    (best, ms)
}

/// Every ring there is.
pub fn every_ring(network: &Network) -> Vec<Ring> {
    let mut rings = Vec::new();
    Walk::new(network).begin(&mut |ring, place| {
        if place + 1 == ring.0.len() {
            rings.push(ring.clone());
        }
        true
    });
    rings
}

/// Goes through all rings, depth first.
struct Walk<'a> {
    network: &'a Network,
    ring: Ring,
    used: Vec<bool>,
    /// GPUs of each datacentre that are not in the ring yet.
    left: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(network: &'a Network) -> Self {
        let left = network.datacentres().iter().map(|datacentre| datacentre.gpus).collect();
        Walk { network, ring: Ring::usual(network), used: vec![false; network.gpus()], left }
    }

    /// A ring has no beginning; ours is in the first datacentre. `visit` is told which place was filled last and
    /// says whether it is worth going on.
    fn begin(&mut self, visit: &mut impl FnMut(&Ring, usize) -> bool) {
        for gpu in self.network.gpus_of(0) {
            self.put(gpu, 0, visit);
        }
    }

    fn put(&mut self, gpu: usize, place: usize, visit: &mut impl FnMut(&Ring, usize) -> bool) {
        self.ring.0[place] = gpu as u16;
        if !visit(&self.ring, place) {
            return;
        }
        let home = self.network.home(gpu);
        self.used[gpu] = true;
        self.left[home] -= 1;
        if self.left[home] > 0 {
            self.put_each(home, place + 1, visit);
        } else {
            for other in 0..self.left.len() {
                if self.left[other] > 0 {
                    self.put_each(other, place + 1, visit);
                }
            }
        }
        self.left[home] += 1;
        self.used[gpu] = false;
    }

    fn put_each(&mut self, datacentre: usize, place: usize, visit: &mut impl FnMut(&Ring, usize) -> bool) {
        for gpu in self.network.gpus_of(datacentre) {
            if !self.used[gpu] {
                self.put(gpu, place, visit);
            }
        }
    }
}
