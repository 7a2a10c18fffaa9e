//! How a collective runs at a moment: the ring, and the route of each of its crossings.

use super::clock::{Clock, Hop};
use super::traffic::Sample;
use super::{Network, Ring, Setting};

/// The route of each crossing, in the order of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Routes(pub(super) Vec<u8>);

/// A ring and its routes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Arrangement {
    /// The ring.
    pub ring: Ring,
    /// The route of each crossing.
    pub routes: Routes,
}

impl Routes {
    /// The routes that a ring has when nobody chooses.
    pub fn usual(network: &Network, ring: &Ring) -> Self {
        Routes(crossings(network, ring).map(|(from, to)| network.usual_route(from, to) as u8).collect())
    }

    /// The widest route of each crossing.
    pub fn widest(setting: &Setting, ring: &Ring, sample: &Sample) -> Self {
        let widest = |(from, to)| setting.widest(sample, from, to) as u8;
        Routes(crossings(&setting.network, ring).map(widest).collect())
    }
}

impl Arrangement {
    /// What a job begins with: GPUs in their order, routes that nobody has chosen.
    pub fn usual(network: &Network) -> Self {
        let ring = Ring::usual(network);
        Arrangement { routes: Routes::usual(network, &ring), ring }
    }

    /// The same ring over the widest routes; over its own where those would be slower, which can be where
    /// routers store before they forward.
    pub fn rerouted(&self, setting: &Setting, sample: &Sample, work: &mut Work) -> Routes {
        let widest = Routes::widest(setting, &self.ring, sample);
        if widest == self.routes {
            return widest;
        }
        let own = work.time(setting, self, sample);
        if work.time_of(setting, &self.ring, &widest, sample) > own { self.routes.clone() } else { widest }
    }
}

fn crossings(network: &Network, ring: &Ring) -> impl Iterator<Item = (usize, usize)> {
    ring.hops().filter(|&(from, to)| network.home(from) != network.home(to))
}

/// Room to work out times in.
#[derive(Debug, Clone, Default)]
pub struct Work {
    clock: Clock,
    hops: Vec<Hop>,
}

impl Work {
    /// ms that a collective takes.
    pub fn time(&mut self, setting: &Setting, arrangement: &Arrangement, sample: &Sample) -> f64 {
        self.time_of(setting, &arrangement.ring, &arrangement.routes, sample)
    }

    /// ms that a collective takes on this ring over these routes.
    pub fn time_of(&mut self, setting: &Setting, ring: &Ring, routes: &Routes, sample: &Sample) -> f64 {
        self.lay(setting, ring, routes, sample);
        self.clock.time(&self.hops, setting.schedule.chunks())
    }

    /// The hop that takes longest for a chunk: its place in the ring, whether it crosses, and its ms.
    pub fn bottleneck(&mut self, setting: &Setting, at: &Arrangement, sample: &Sample) -> (usize, bool, f64) {
        self.lay(setting, &at.ring, &at.routes, sample);
        let mut slowest = (0, f64::NEG_INFINITY);
        for (place, hop) in self.hops.iter().enumerate() {
            if hop.slowest() > slowest.1 {
                slowest = (place, hop.slowest());
            }
        }
        let (from, to) = at.ring.hops().nth(slowest.0).unwrap_or_default();
        (slowest.0, setting.network.home(from) != setting.network.home(to), slowest.1)
    }

    fn lay(&mut self, setting: &Setting, ring: &Ring, routes: &Routes, sample: &Sample) {
        self.hops.clear();
        let mut routes = routes.0.iter();
        for (from, to) in ring.hops() {
            let inside = setting.network.home(from) == setting.network.home(to);
            self.hops.push(if inside {
                setting.inside(sample, from, to)
            } else {
                let route = routes.next().copied().unwrap_or_default();
                setting.crossing(sample, from, to, usize::from(route))
            });
        }
    }

    /// ms of a collective over hops that are known.
    pub(super) fn clock(&mut self, hops: &[Hop], chunks: &[f64]) -> f64 {
        self.clock.time(hops, chunks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wan::{Datacentre, Forwarding, Schedule, Search, Traffic};

    /// The same, told from the datacentre on that stands so many later in the ring.
    fn turned(at: &Arrangement, network: &Network, by: usize) -> Arrangement {
        let starts = |&place: &usize| {
            let before = if place == 0 { at.ring.0.len() } else { place } - 1;
            network.home(at.ring.0[place].into()) != network.home(at.ring.0[before].into())
        };
        let place = (0..at.ring.0.len()).filter(starts).nth(by).unwrap_or(0);
        let mut turned = at.clone();
        turned.ring.0.rotate_left(place);
        turned.routes.0.rotate_left(by);
        turned
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// A ring has no beginning: told from another datacentre on, it is the same.
        #[test]
        fn a_ring_takes_as_long_from_wherever_it_is_told(
            sizes in prop::collection::vec((1usize..5, 1usize..4), 2..4),
            collective in prop::sample::select(Schedule::KNOWN.to_vec()),
            forwarding in prop::sample::select(vec![Forwarding::CutThrough, Forwarding::StoreAndForward]),
            (chunk_mb, delay_ms) in (1.0f64..64.0, 0.0f64..10.0),
            seed: u64,
            from: prop::sample::Index,
        ) {
            let sizes: Vec<_> = sizes.into_iter().map(|(gpus, routers)| Datacentre { gpus, routers }).collect();
            let setting = Setting::new(Network::new(&sizes).unwrap()).unwrap().with_collective(collective).unwrap();
            let setting = Setting { forwarding, chunk_mb, delay_ms, ..setting };
            let links = Traffic::new(&setting, 0.0, seed, 0).next_sample();
            let best = Search::new(&setting.network).widest_routes(&setting, &links).0;
            let turned = turned(&best, &setting.network, from.index(sizes.len()));
            let [told, again] = [&best, &turned].map(|at| Work::default().time(&setting, at, &links));
            prop_assert!((again - told).abs() <= 1e-9 * told);
        }
    }
}
