//! The ring whose slowest hop is the fastest, exactly: the best path through each datacentre between any two of
//! its GPUs (Held and Karp, over sets of GPUs), joined over the crossings.

use super::table::Table;
use crate::wan::{Network, Ring};

/// Room for the paths through each datacentre.
#[derive(Debug, Clone, Default)]
pub struct HeldKarp {
    paths: Vec<Paths>,
}

/// The best paths through one datacentre.
#[derive(Debug, Clone, Default)]
struct Paths {
    first: usize,
    gpus: usize,
    /// The slowest hop of the best path through a set, from a start to an end: set by set, end by end.
    slowest: Vec<f64>,
}

/// A way through some datacentres: its slowest hop, and the ends of each path on it.
#[derive(Debug, Clone, Default)]
struct Way {
    slowest: f64,
    ends: Vec<(usize, usize, usize)>,
}

impl HeldKarp {
    /// The best ring.
    pub fn best(&mut self, network: &Network, table: &Table) -> Ring {
        let datacentres = network.datacentres().len();
        self.paths.resize(datacentres, Paths::default());
        for (at, paths) in self.paths.iter_mut().enumerate() {
            paths.fill(network.gpus_of(at), table);
        }
        let mut best = Way { slowest: f64::INFINITY, ends: Vec::new() };
        let mut order: Vec<usize> = (0..datacentres).collect();
        each_order(&mut order, 1, &mut |order| self.join(order, table, &mut best));
        let mut ring = Vec::with_capacity(network.gpus());
        for (datacentre, start, end) in best.ends {
            self.paths[datacentre].walk(start, end, table, &mut ring);
        }
        Ring(ring)
    }

    /// Joins the datacentres in this order, for every GPU to start from.
    fn join(&self, order: &[usize], table: &Table, best: &mut Way) {
        for start in 0..self.paths[order[0]].gpus {
            let first = &self.paths[order[0]];
            let mut ways: Vec<Way> = (0..first.gpus)
                .map(|end| Way { slowest: first.whole(start, end), ends: vec![(order[0], start, end)] })
                .collect();
            for pair in order.windows(2) {
                ways = self.onwards(pair[0], pair[1], &ways, table);
            }
            let last = &self.paths[order[order.len() - 1]];
            for (end, way) in ways.iter().enumerate() {
                let slowest = way.slowest.max(table.slowest(last.gpu(end), first.gpu(start)));
                if slowest < best.slowest {
                    *best = Way { slowest, ends: way.ends.clone() };
                }
            }
        }
    }

    /// The best ways to every end of the next datacentre.
    fn onwards(&self, from: usize, to: usize, ways: &[Way], table: &Table) -> Vec<Way> {
        let (left, right) = (&self.paths[from], &self.paths[to]);
        let enter: Vec<(f64, usize)> = (0..right.gpus)
            .map(|start| {
                let arrive = |(end, way): (usize, &Way)| {
                    (way.slowest.max(table.slowest(left.gpu(end), right.gpu(start))), end)
                };
                least(ways.iter().enumerate().map(arrive))
            })
            .collect();
        let reach = |end: usize| {
            let by = |(start, &(slowest, _)): (usize, &(f64, usize))| {
                (slowest.max(right.whole(start, end)), start)
            };
            let (slowest, start) = least(enter.iter().enumerate().map(by));
            let mut ends = ways[enter[start].1].ends.clone();
            ends.push((to, start, end));
            Way { slowest, ends }
        };
        (0..right.gpus).map(reach).collect()
    }
}

/// The least, and of equals the first.
fn least(values: impl Iterator<Item = (f64, usize)>) -> (f64, usize) {
    values.fold((f64::INFINITY, 0), |best, value| if value.0 < best.0 { value } else { best })
}

/// Every order of what stands from `fixed` on.
fn each_order(order: &mut [usize], fixed: usize, visit: &mut impl FnMut(&[usize])) {
    if fixed + 1 >= order.len() {
        return visit(order);
    }
    for other in fixed..order.len() {
        order.swap(fixed, other);
        each_order(order, fixed + 1, visit);
        order.swap(fixed, other);
    }
}

impl Paths {
    #[inline]
    fn gpu(&self, at: usize) -> u16 {
        (self.first + at) as u16
    }

    /// The slowest hop of the best path through all GPUs.
    #[inline]
    fn whole(&self, start: usize, end: usize) -> f64 {
        let all = (1 << self.gpus) - 1;
        self.slowest[(all * self.gpus + end) * self.gpus + start]
    }

    fn fill(&mut self, gpus: std::ops::Range<usize>, table: &Table) {
        let m = gpus.len();
        (self.first, self.gpus) = (gpus.start, m);
        self.slowest.clear();
        self.slowest.resize((1 << m) * m * m, f64::INFINITY);
        for start in 0..m {
            self.slowest[((1 << start) * m + start) * m + start] = 0.0;
        }
        for set in 1..1usize << m {
            for end in (0..m).filter(|end| set >> end & 1 == 1) {
                for next in (0..m).filter(|next| set >> next & 1 == 0) {
                    let hop = table.slowest(self.gpu(end), self.gpu(next));
                    let (from, to) = ((set * m + end) * m, ((set | 1 << next) * m + next) * m);
                    // A larger set lies behind every smaller one.
                    let (smaller, larger) = self.slowest.split_at_mut(to);
                    for (known, &before) in larger[..m].iter_mut().zip(&smaller[from..from + m]) {
                        let slowest = if before > hop { before } else { hop };
                        *known = if slowest < *known { slowest } else { *known };
                    }
                }
            }
        }
    }

    /// Appends the best path from a start to an end.
    fn walk(&self, start: usize, end: usize, table: &Table, into: &mut Vec<u16>) {
        let m = self.gpus;
        let (begin, mut set, mut at) = (into.len(), (1usize << m) - 1, end);
        into.push(self.gpu(end));
        while set.count_ones() > 1 {
            let known = self.slowest[(set * m + at) * m + start];
            set &= !(1 << at);
            let before = (0..m).filter(|before| set >> before & 1 == 1).find(|&before| {
                let hop = table.slowest(self.gpu(before), self.gpu(at));
                self.slowest[(set * m + before) * m + start].max(hop) <= known
            });
            at = before.expect("a path as good as it is known to be");
            into.push(self.gpu(at));
        }
        into[begin..].reverse();
    }
}
