//! The best ring for the links of a moment.
//!
//! Few rings are all looked at. Of more, the one whose slowest hop is the fastest is found exactly (Held and
//! Karp's way); what a clock would still tell apart is below a thousandth. Beyond that, small changes are made
//! as long as they help.

mod exact;
mod held_karp;
mod local;
mod table;

use std::fmt;
use std::str::FromStr;

use dynamiccl_spec::words::{UnknownWord, look_up};
use serde::Serialize;

use super::arrangement::Work;
use super::traffic::Sample;
use super::{Arrangement, Network, Ring, Routes, Setting, WanError};
use held_karp::HeldKarp;
use table::Table;

/// Rings up to which all are looked at.
const MOST_RINGS: f64 = 20_000.0;
/// GPUs of a datacentre, and datacentres, up to which the slowest hop is made as fast as can be.
const MOST_OF_ONE: usize = 12;
const MOST_ORDERED: usize = 5;

/// How a ring is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Every ring that could still be the best.
    Exact,
    /// The ring whose slowest hop is the fastest.
    HeldKarp,
    /// Small changes as long as they help.
    Local,
}

impl Method {
    /// The best method that is quick enough.
    pub fn of(network: &Network) -> Self {
        let quick = |method: &Method| method.excess(network).is_none();
        [Method::Exact, Method::HeldKarp].into_iter().find(quick).unwrap_or(Method::Local)
    }

    /// An error where it would take too long, or more memory than there is.
    pub fn check(self, network: &Network) -> Result<(), WanError> {
        let Some((what, count, most)) = self.excess(network) else { return Ok(()) };
        let count = if count < 1e9 { format!("{count}") } else { format!("{:.1e}", count.min(f64::MAX)) };
        let remedy = format!("it takes up to {most}; use {}", Method::of(network));
        Err(WanError::value(what, count, &remedy))
    }

    /// What a network has more of than this method is quick with: what, how many, and the most.
    fn excess(self, network: &Network) -> Option<(&'static str, f64, f64)> {
        let datacentres = network.datacentres();
        let largest = datacentres.iter().map(|datacentre| datacentre.gpus).max().unwrap_or(0);
        let limits = match self {
            Method::Exact => vec![("rings", rings(network), MOST_RINGS)],
            Method::HeldKarp => vec![
                ("GPUs of a datacentre", largest as f64, MOST_OF_ONE as f64),
                ("datacentres", datacentres.len() as f64, MOST_ORDERED as f64),
            ],
            Method::Local => Vec::new(),
        };
        limits.into_iter().find(|(_, count, most)| count > most)
    }
}

/// The words of the methods.
const WORDS: [(&str, Method); 3] =
    [("exact", Method::Exact), ("held-karp", Method::HeldKarp), ("local", Method::Local)];

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = WORDS.iter().find(|(_, method)| method == self).map_or("", |(word, _)| word);
        f.pad(word)
    }
}

impl FromStr for Method {
    type Err = UnknownWord;

    fn from_str(s: &str) -> Result<Self, UnknownWord> {
        look_up("search", s, &WORDS)
    }
}

/// How many rings there are.
pub(super) fn rings(network: &Network) -> f64 {
    let factorial = |n: usize| (2..=n).map(|x| x as f64).product::<f64>();
    let orders = factorial(network.datacentres().len() - 1);
    network.datacentres().iter().fold(orders, |rings, datacentre| rings * factorial(datacentre.gpus))
}

/// Every ring, one after the other: where all of them must be known.
pub(super) fn every_ring(network: &Network) -> Vec<Ring> {
    exact::every_ring(network)
}

/// Searches rings; it keeps its room between two searches.
#[derive(Debug, Clone)]
pub struct Search {
    method: Method,
    table: Table,
    work: Work,
    held_karp: HeldKarp,
}

impl Search {
    /// The best method that is quick enough.
    pub fn new(network: &Network) -> Self {
        Search::by(Method::of(network))
    }

    /// This method, however long it takes.
    pub fn by(method: Method) -> Self {
        Search { method, table: Table::default(), work: Work::default(), held_karp: HeldKarp::default() }
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The best ring for these links over the routes that it would usually have, and its ms.
    pub fn usual_routes(&mut self, setting: &Setting, sample: &Sample) -> (Arrangement, f64) {
        self.table.lay(setting, sample, |from, to| setting.network.usual_route(from, to));
        let (ring, ms) = self.ring(setting);
        (Arrangement { routes: Routes::usual(&setting.network, &ring), ring }, ms)
    }

    /// The best ring for these links over the widest routes, and its ms.
    pub fn widest_routes(&mut self, setting: &Setting, sample: &Sample) -> (Arrangement, f64) {
        self.table.lay(setting, sample, |from, to| setting.widest(sample, from, to));
        let (ring, ms) = self.ring(setting);
        (Arrangement { routes: Routes::widest(setting, &ring, sample), ring }, ms)
    }

    fn ring(&mut self, setting: &Setting) -> (Ring, f64) {
        let Search { method, table, work, held_karp } = self;
        let (ring, ms) = match method {
            Method::Exact => return exact::best(setting, table, work),
            Method::HeldKarp => {
                let ring = held_karp.best(&setting.network, table);
                let ms = table.time(&ring, setting, work);
                (ring, ms)
            }
            Method::Local => local::best(setting, table, work),
        };
        // What only comes near to the best must not lose to changing nothing.
        let usual = Ring::usual(&setting.network);
        let unchanged = table.time(&usual, setting, work);
        if unchanged < ms { (usual, unchanged) } else { (ring, ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::{Datacentre, Traffic};

    fn mean_of(setting: &Setting, method: Method, samples: usize) -> f64 {
        let (mut search, mut traffic) = (Search::by(method), Traffic::new(setting, 0.0, 3, 0));
        let mut sum = 0.0;
        for _ in 0..samples {
            let sample = traffic.next_sample();
            let (best, ms) = search.widest_routes(setting, &sample);
            assert!(best.ring.is_of(&setting.network), "{best:?}");
            assert_eq!(Work::default().time(setting, &best, &sample), ms);
            sum += ms;
        }
        sum / samples as f64
    }

    #[test]
    fn the_exact_search_misses_no_ring() {
        let sizes = [(3, 2), (2, 1), (2, 2)].map(|(gpus, routers)| Datacentre { gpus, routers });
        for network in [Network::even(2, 3, 2).unwrap(), Network::new(&sizes).unwrap()] {
            let setting = Setting::new(network).unwrap();
            let all = every_ring(&setting.network);
            assert_eq!(all.len() as f64, rings(&setting.network));
            assert!(all.iter().all(|ring| ring.is_of(&setting.network)));
            let mut traffic = Traffic::new(&setting, 0.0, 1, 0);
            let mut work = Work::default();
            for _ in 0..20 {
                let sample = traffic.next_sample();
                let mut time = |ring: &Ring| {
                    work.time_of(&setting, ring, &Routes::widest(&setting, ring, &sample), &sample)
                };
                let best = all.iter().map(&mut time).fold(f64::INFINITY, f64::min);
                assert_eq!(Search::by(Method::Exact).widest_routes(&setting, &sample).1, best);
            }
        }
    }

    /// The published shares: within 0.1 % and within 0.15 % of the best ring.
    #[test]
    fn the_quicker_searches_come_close() {
        let setting = Setting::new(Network::even(2, 4, 2).unwrap()).unwrap();
        let [exact, held_karp, local] =
            [Method::Exact, Method::HeldKarp, Method::Local].map(|method| mean_of(&setting, method, 200));
        assert!(held_karp >= exact && held_karp < 1.001 * exact, "{exact} {held_karp}");
        assert!(local >= exact && local < 1.003 * exact, "{exact} {local}");
    }

    #[test]
    fn unequal_and_many_datacentres_have_rings_too() {
        let sizes = [(5, 2), (3, 1), (4, 3), (2, 2)].map(|(gpus, routers)| Datacentre { gpus, routers });
        let setting = Setting::new(Network::new(&sizes).unwrap()).unwrap();
        let [held_karp, local] = [Method::HeldKarp, Method::Local].map(|m| mean_of(&setting, m, 20));
        assert!(local < 1.05 * held_karp, "{held_karp} {local}");
        let one_each = Setting::new(Network::even(3, 1, 1).unwrap()).unwrap();
        let [exact, held_karp] = [Method::Exact, Method::HeldKarp].map(|m| mean_of(&one_each, m, 20));
        assert!((held_karp / exact - 1.0).abs() < 0.01, "{exact} {held_karp}");
    }

    #[test]
    fn the_method_follows_the_size() {
        let of = |datacentres, gpus| Method::of(&Network::even(datacentres, gpus, 2).unwrap());
        assert_eq!([of(2, 4), of(2, 8), of(2, 13)], [Method::Exact, Method::HeldKarp, Method::Local]);
        assert_eq!([of(3, 3), of(6, 4)], [Method::Exact, Method::Local]);
        for method in [Method::Exact, Method::HeldKarp, Method::Local] {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        assert!("helt-karp".parse::<Method>().unwrap_err().to_string().contains("held-karp"));
    }

    #[test]
    fn what_would_never_end_is_refused_with_a_way_out() {
        let said = |method: Method, datacentres, gpus| {
            let network = Network::even(datacentres, gpus, 2).unwrap();
            method.check(&network).map_err(|error| error.to_string())
        };
        let held_karp = said(Method::HeldKarp, 2, 64).unwrap_err();
        assert_eq!(held_karp, "64 GPUs of a datacentre: it takes up to 12; use local");
        let many = said(Method::HeldKarp, 16, 1).unwrap_err();
        assert_eq!(many, "16 datacentres: it takes up to 5; use local");
        let exact = said(Method::Exact, 16, 1).unwrap_err();
        assert_eq!(exact, "1.3e12 rings: it takes up to 20000; use local");
        assert!(said(Method::Exact, 2, 512).unwrap_err().contains("use local"));
        assert!(said(Method::Exact, 2, 8).unwrap_err().ends_with("use held-karp"));
        assert_eq!([said(Method::HeldKarp, 2, 12), said(Method::Local, 16, 64)], [Ok(()), Ok(())]);
    }
}
