//! Datacentres, their GPUs and border routers, and the directed links between them.
//!
//! Every link has a number, so that a sample of all bandwidths is one row of them. Inside a datacentre every GPU
//! reaches every other and every router; between two datacentres every router reaches every router.

use serde::Serialize;

use super::WanError;

/// What a datacentre holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Datacentre {
    /// GPUs.
    pub gpus: usize,
    /// Border routers.
    pub routers: usize,
}

/// Datacentres and the links between all they hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    datacentres: Vec<Datacentre>,
    /// The datacentre of each GPU.
    home: Vec<usize>,
    /// The number of each datacentre's first GPU.
    first: Vec<usize>,
    /// Where the links inside each datacentre begin: GPU to GPU, then up to routers, then down from them.
    inside: Vec<[usize; 3]>,
    /// Where the links from one datacentre to another begin.
    between: Vec<usize>,
    links: usize,
    /// The number of the first link between datacentres.
    first_between: usize,
}

impl Network {
    /// Most GPUs of all datacentres together.
    pub const MOST_GPUS: usize = 1024;
    /// Most datacentres.
    pub const MOST_DATACENTRES: usize = 16;
    /// Most routers of a datacentre: routes are counted in bytes.
    pub const MOST_ROUTERS: usize = 15;

    /// Datacentres that are wired up.
    pub fn new(datacentres: &[Datacentre]) -> Result<Self, WanError> {
        check(datacentres)?;
        let (mut home, mut first, mut inside, mut links) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (at, &Datacentre { gpus, routers }) in datacentres.iter().enumerate() {
            first.push(home.len());
            home.extend(std::iter::repeat_n(at, gpus));
            let up = links + gpus * (gpus - 1);
            let down = up + gpus * routers;
            inside.push([links, up, down]);
            links = down + gpus * routers;
        }
        let first_between = links;
        let mut between = Vec::new();
        for (from, a) in datacentres.iter().enumerate() {
            for (to, b) in datacentres.iter().enumerate() {
                between.push(links);
                links += if from == to { 0 } else { a.routers * b.routers };
            }
        }
        let datacentres = datacentres.to_vec();
        Ok(Network { datacentres, home, first, inside, between, links, first_between })
    }

    /// Datacentres with as many GPUs and as many routers each.
    pub fn even(datacentres: usize, gpus: usize, routers: usize) -> Result<Self, WanError> {
        Network::new(&vec![Datacentre { gpus, routers }; datacentres])
    }

    /// The datacentres.
    pub fn datacentres(&self) -> &[Datacentre] {
        &self.datacentres
    }

    /// GPUs of all of them.
    pub fn gpus(&self) -> usize {
        self.home.len()
    }

    /// The GPUs of a datacentre, by number.
    pub fn gpus_of(&self, datacentre: usize) -> std::ops::Range<usize> {
        let first = self.first[datacentre];
        first..first + self.datacentres[datacentre].gpus
    }

    /// The datacentre of a GPU.
    #[inline]
    pub fn home(&self, gpu: usize) -> usize {
        self.home[gpu]
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links
    }

    /// Whether a link joins two datacentres.
    pub fn is_between(&self, link: usize) -> bool {
        link >= self.first_between
    }

    /// The link from a GPU to another of its datacentre.
    #[inline]
    pub fn inside(&self, from: usize, to: usize) -> usize {
        let datacentre = self.home[from];
        let first = self.first[datacentre];
        let (from, to) = (from - first, to - first);
        let others = self.datacentres[datacentre].gpus - 1;
        self.inside[datacentre][0] + from * others + to - usize::from(to > from)
    }

    /// How many routes there are from a GPU to one of another datacentre.
    #[inline]
    pub fn routes(&self, from: usize, to: usize) -> usize {
        self.datacentres[self.home[from]].routers * self.datacentres[self.home[to]].routers
    }

    /// The links of a route to a GPU of another datacentre: up to a router, across, and down.
    #[inline]
    pub fn crossing(&self, from: usize, to: usize, route: usize) -> [usize; 3] {
        let (left, right) = (self.home[from], self.home[to]);
        let [out_of, into] = [self.datacentres[left].routers, self.datacentres[right].routers];
        let (out, enter) = (route / into, route % into);
        let up = self.inside[left][1] + (from - self.first[left]) * out_of + out;
        let across = self.between[left * self.datacentres.len() + right] + route;
        let down = self.inside[right][2] + (to - self.first[right]) * into + enter;
        [up, across, down]
    }

    /// The route that a pair of GPUs has when nobody chooses: each GPU has a router of its own, in turn.
    pub fn usual_route(&self, from: usize, to: usize) -> usize {
        let own = |gpu: usize| {
            let datacentre = self.home[gpu];
            (gpu - self.first[datacentre]) % self.datacentres[datacentre].routers
        };
        own(from) * self.datacentres[self.home[to]].routers + own(to)
    }
}

fn check(datacentres: &[Datacentre]) -> Result<(), WanError> {
    let count = datacentres.len();
    if !(2..=Network::MOST_DATACENTRES).contains(&count) {
        return Err(WanError::value(
            "datacentres",
            count,
            &format!("give 2 to {}", Network::MOST_DATACENTRES),
        ));
    }
    for datacentre in datacentres {
        if datacentre.gpus == 0 {
            return Err(WanError::value("GPUs of a datacentre", 0, "give each at least one"));
        }
        if !(1..=Network::MOST_ROUTERS).contains(&datacentre.routers) {
            let remedy = format!("give each datacentre 1 to {}", Network::MOST_ROUTERS);
            return Err(WanError::value("routers", datacentre.routers, &remedy));
        }
    }
    let gpus: usize = datacentres.iter().map(|datacentre| datacentre.gpus).sum();
    if gpus > Network::MOST_GPUS {
        return Err(WanError::value("GPUs", gpus, &format!("give at most {}", Network::MOST_GPUS)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_link_has_a_number_of_its_own() {
        let sizes = [(3, 2), (1, 1), (4, 3)].map(|(gpus, routers)| Datacentre { gpus, routers });
        let network = Network::new(&sizes).unwrap();
        let mut links = BTreeSet::new();
        for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))) {
            if from == to {
                continue;
            }
            if network.home(from) == network.home(to) {
                assert!(links.insert(network.inside(from, to)));
            } else {
                (0..network.routes(from, to)).for_each(|r| links.extend(network.crossing(from, to, r)));
            }
        }
        assert_eq!(links, (0..network.links()).collect());
        let between = (0..network.links()).filter(|&link| network.is_between(link)).count();
        assert_eq!(between, 2 * (2 + 6 + 3));
    }

    #[test]
    fn the_usual_route_is_by_the_place_of_each_gpu() {
        let network = Network::even(2, 4, 2).unwrap();
        assert_eq!(network.usual_route(1, 4), 2);
        assert_eq!(network.usual_route(2, 7), 1);
        assert_eq!(network.usual_route(5, 0), 2);
    }

    #[test]
    fn what_is_no_wan_is_refused() {
        let message = |network: Result<Network, WanError>| network.unwrap_err().to_string();
        assert_eq!(message(Network::even(1, 4, 2)), "1 datacentres: give 2 to 16");
        assert_eq!(message(Network::even(2, 4, 0)), "0 routers: give each datacentre 1 to 15");
        assert!(message(Network::even(2, 0, 2)).contains("at least one"));
        assert!(message(Network::even(4, 300, 2)).contains("at most 1024"));
    }
}
