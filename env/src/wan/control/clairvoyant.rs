//! The least that any plan could have cost, knowing all links in advance: backwards from the end, over every ring
//! and every choice of routes.

use super::lanes::{Clocks, Hops, LANES};
use crate::wan::course::batch;
use crate::wan::search::{every_ring, rings};
use crate::wan::traffic::Sample;
use crate::wan::{Arrangement, Costs, Ring, Setting, WanError};

/// Rings and routes up to which all are known.
const MOST_STATES: f64 = 40_000.0;

/// Knows every ring of a network.
#[derive(Debug, Clone)]
pub struct Clairvoyant {
    rings: Vec<Ring>,
    /// How many choices of routes a ring has.
    choices: usize,
    /// The ring and the routes that a job begins with.
    begin: usize,
    clocks: Clocks,
    hops: Vec<Hops>,
}

impl Clairvoyant {
    /// For networks that are small enough.
    pub fn new(setting: &Setting) -> Result<Self, WanError> {
        let network = &setting.network;
        let routers: usize = network.datacentres().iter().map(|datacentre| datacentre.routers).product();
        let states = rings(network) * (routers as f64) * (routers as f64);
        if states > MOST_STATES {
            let remedy = format!("give fewer GPUs or routers, so that there are at most {MOST_STATES}");
            return Err(WanError::TooLarge { states: format!("{states:.0}"), remedy });
        }
        let mut known = Clairvoyant {
            rings: every_ring(network),
            choices: routers * routers,
            begin: 0,
            clocks: Clocks::default(),
            hops: Vec::new(),
        };
        known.begin = known.number(setting, &Arrangement::usual(network));
        Ok(known)
    }

    /// Mean ms of a collective, costs included, had everything been known; `step` is told of collectives as they are
    /// gone through and stops with its error.
    pub fn mean_ms<X>(
        &mut self,
        setting: &Setting,
        samples: &[Sample],
        costs: Costs,
        step: impl Fn(u64) -> Result<(), X>,
    ) -> Result<f64, X> {
        let states = self.rings.len() * self.choices;
        let (mut ahead, mut times) = (vec![0.0; states], vec![0.0; states]);
        for (at, sample) in samples.iter().rev().enumerate() {
            self.times(setting, sample, &mut times);
            ahead.iter_mut().zip(&times).for_each(|(ahead, ms)| *ahead += ms);
            let least = |from: &[f64]| from.iter().copied().fold(f64::INFINITY, f64::min);
            let rebuilt = costs.rebuild_ms + least(&ahead);
            for of_ring in ahead.chunks_exact_mut(self.choices) {
                let changed = rebuilt.min(costs.reroute_ms + least(of_ring));
                of_ring.iter_mut().for_each(|ahead| *ahead = ahead.min(changed));
            }
            batch(at + 1, samples.len()).map_or(Ok(()), &step)?;
        }
        Ok(ahead[self.begin] / samples.len().max(1) as f64)
    }

    /// ms of every ring over every choice of routes.
    fn times(&mut self, setting: &Setting, sample: &Sample, into: &mut [f64]) {
        let chunks = setting.schedule.chunks();
        for (ring, into) in self.rings.iter().zip(into.chunks_exact_mut(self.choices)) {
            for (batch, into) in into.chunks_mut(LANES).enumerate() {
                lay(setting, sample, ring, batch * LANES, &mut self.hops);
                let times = self.clocks.times(&self.hops, chunks);
                into.iter_mut().zip(times).for_each(|(into, ms)| *into = ms);
            }
        }
    }

    /// The number of an arrangement.
    fn number(&self, setting: &Setting, arrangement: &Arrangement) -> usize {
        let ring = self.rings.iter().position(|ring| *ring == arrangement.ring).unwrap_or(0);
        let mut choice = 0;
        let mut scale = 1;
        let network = &setting.network;
        let crossings = arrangement.ring.hops().filter(|&(a, b)| network.home(a) != network.home(b));
        for ((from, to), &route) in crossings.zip(&arrangement.routes.0) {
            choice += usize::from(route) * scale;
            scale *= network.routes(from, to);
        }
        ring * self.choices + choice
    }
}

/// The hops of a ring over these choices of routes: a choice is the routes as digits, that of the first crossing
/// the least.
fn lay(setting: &Setting, sample: &Sample, ring: &Ring, first: usize, into: &mut Vec<Hops>) {
    into.clear();
    let network = &setting.network;
    let mut scale = 1;
    for (from, to) in ring.hops() {
        into.push(if network.home(from) == network.home(to) {
            let hop = setting.inside(sample, from, to);
            Hops::of(|_| hop)
        } else {
            let routes = network.routes(from, to);
            let before = scale;
            scale *= routes;
            Hops::of(|lane| setting.crossing(sample, from, to, (first + lane) / before % routes))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::arrangement::Work;
    use crate::wan::{Datacentre, Forwarding, Network, Routes, Search, Traffic};

    /// All rings and routes, gone through without lanes.
    #[test]
    fn what_is_known_is_what_the_clock_says() {
        for forwarding in [Forwarding::CutThrough, Forwarding::StoreAndForward] {
            let sizes = [(2, 1), (3, 2)].map(|(gpus, routers)| Datacentre { gpus, routers });
            let setting = Setting { forwarding, ..Setting::new(Network::new(&sizes).unwrap()).unwrap() };
            let sample = Traffic::new(&setting, 0.0, 1, 0).next_sample();
            let mut known = Clairvoyant::new(&setting).unwrap();
            let mut times = vec![0.0; known.rings.len() * known.choices];
            known.times(&setting, &sample, &mut times);
            assert_eq!((known.rings.len(), known.choices), (12, 4));
            for ring in known.rings.clone() {
                for routes in [[0, 0], [1, 0], [0, 1], [1, 1]] {
                    let at = Arrangement { ring: ring.clone(), routes: Routes(routes.to_vec()) };
                    let ms = Work::default().time(&setting, &at, &sample);
                    assert_eq!(times[known.number(&setting, &at)], ms);
                }
            }
        }
    }

    #[test]
    fn without_costs_every_collective_is_the_best() {
        let setting = Setting::new(Network::even(2, 3, 2).unwrap()).unwrap();
        let mut traffic = Traffic::new(&setting, 0.5, 1, 0);
        let samples: Vec<Sample> = (0..30).map(|_| traffic.next_sample()).collect();
        let mut search = Search::new(&setting.network);
        let best: f64 = samples.iter().map(|sample| search.widest_routes(&setting, sample).1).sum();
        let free = Costs { rebuild_ms: 0.0, reroute_ms: 0.0 };
        let mut known = Clairvoyant::new(&setting).unwrap();
        let mut least = |costs| known.mean_ms(&setting, &samples, costs, |_| Ok::<_, ()>(())).unwrap();
        assert!((least(free) - best / 30.0).abs() < 1e-9);
        // Where changes cannot be paid, what is there stays.
        let dear = Costs { rebuild_ms: 1e9, reroute_ms: 1e9 };
        let usual = Arrangement::usual(&setting.network);
        let stays: f64 = samples.iter().map(|s| Work::default().time(&setting, &usual, s)).sum();
        assert!((least(dear) - stays / 30.0).abs() < 1e-9);
    }

    #[test]
    fn too_many_rings_are_refused() {
        let setting = Setting::new(Network::even(2, 8, 2).unwrap()).unwrap();
        let refused = Clairvoyant::new(&setting).unwrap_err().to_string();
        assert!(refused.contains("too many to know them all"), "{refused}");
    }
}
