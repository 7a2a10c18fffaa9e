//! A job that runs collective after collective: what it would cost to change, and what a change came to.

use serde::Serialize;

use super::arrangement::Work;
use super::control::Move;
use super::traffic::Sample;
use super::{Arrangement, Routes, Setting};

/// What a change costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// ms of rebuilding the ring.
    pub rebuild_ms: f64,
    /// ms of rerouting, where it changes a route.
    pub reroute_ms: f64,
}

/// A job under way.
#[derive(Debug, Clone)]
pub struct Operation {
    costs: Costs,
    arrangement: Arrangement,
    /// Collectives that have run.
    done: u32,
    /// Collectives since the routes and since the ring were chosen.
    since: [u32; 2],
    last: Option<Done>,
}

/// What each move would lead to, on the links as they are seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospect {
    /// ms of a collective as it is.
    pub keep_ms: f64,
    /// ms over the widest routes.
    pub reroute_ms: f64,
    /// ms on the best ring.
    pub rebuild_ms: f64,
    /// The routes that rerouting would choose.
    pub routes: Routes,
    /// Whether rerouting would change a route.
    pub reroutes: bool,
    /// Whether rebuilding would change anything.
    pub rebuilds: bool,
}

/// One collective that has run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    /// What was done before it.
    pub moved: Move,
    /// ms of the collective.
    pub ms: f64,
    /// ms that the change before it cost.
    pub cost_ms: f64,
    /// ms that were foreseen, on the links as they were seen.
    pub foreseen_ms: f64,
}

impl Operation {
    /// A job with the ring and the routes that nobody has chosen.
    pub fn new(setting: &Setting, costs: Costs) -> Self {
        let arrangement = Arrangement::usual(&setting.network);
        Operation { costs, arrangement, done: 0, since: [0; 2], last: None }
    }

    /// The ring and the routes that the next collective runs on if nothing changes.
    pub fn arrangement(&self) -> &Arrangement {
        &self.arrangement
    }

    /// What changes cost.
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// Collectives that have run.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Collectives since the routes and since the ring were chosen.
    pub fn since(&self) -> [u32; 2] {
        self.since
    }

    /// The collective that ran last.
    pub fn last(&self) -> Option<&Done> {
        self.last.as_ref()
    }

    /// What each move would lead to on links that were seen, of which the best arrangement is known.
    pub fn look(
        &self,
        setting: &Setting,
        seen: &Sample,
        best: (&Arrangement, f64),
        work: &mut Work,
    ) -> Prospect {
        let keep_ms = work.time(setting, &self.arrangement, seen);
        let routes = self.arrangement.rerouted(setting, seen, work);
        let reroutes = routes != self.arrangement.routes;
        let reroute_ms = match reroutes {
            true => work.time_of(setting, &self.arrangement.ring, &routes, seen),
            false => keep_ms,
        };
        let rebuilds = *best.0 != self.arrangement;
        Prospect { keep_ms, reroute_ms, rebuild_ms: best.1, routes, reroutes, rebuilds }
    }

    /// Moves, and runs a collective on the links as they are. A reroute that changes no route costs nothing; a
    /// rebuilding always costs.
    pub fn act(
        &mut self,
        setting: &Setting,
        moved: Move,
        prospect: &Prospect,
        best: &Arrangement,
        now: &Sample,
        work: &mut Work,
    ) -> Done {
        self.since.iter_mut().for_each(|since| *since += 1);
        let (cost_ms, foreseen_ms) = match moved {
            Move::Keep => (0.0, prospect.keep_ms),
            Move::Reroute => {
                let changed = prospect.reroutes;
                self.arrangement.routes.clone_from(&prospect.routes);
                self.since[0] = 0;
                (if changed { self.costs.reroute_ms } else { 0.0 }, prospect.reroute_ms)
            }
            Move::Rebuild => {
                self.arrangement.clone_from(best);
                self.since = [0; 2];
                (self.costs.rebuild_ms, prospect.rebuild_ms)
            }
        };
        let ms = work.time(setting, &self.arrangement, now);
        let done = Done { moved, ms, cost_ms, foreseen_ms };
        self.done += 1;
        self.last = Some(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::{Network, Search, Traffic};

    #[test]
    fn a_route_is_charged_where_it_changes_and_a_ring_always() {
        let setting = Setting::new(Network::even(2, 4, 2).unwrap()).unwrap();
        let links = Traffic::new(&setting, 0.0, 1, 0).next_sample();
        let (best, ms) = Search::new(&setting.network).widest_routes(&setting, &links);
        let mut job = Operation::new(&setting, Costs { rebuild_ms: 100.0, reroute_ms: 5.0 });
        let mut work = Work::default();
        let mut act = |moved| {
            let prospect = job.look(&setting, &links, (&best, ms), &mut work);
            let done = job.act(&setting, moved, &prospect, &best, &links, &mut work);
            assert_eq!(done.ms, done.foreseen_ms);
            (done.cost_ms, job.since())
        };
        assert_eq!(act(Move::Keep), (0.0, [1, 1]));
        assert_eq!(act(Move::Reroute), (5.0, [0, 2]));
        assert_eq!(act(Move::Reroute), (0.0, [0, 3]));
        assert_eq!(act(Move::Rebuild), (100.0, [0, 0]));
        assert_eq!(act(Move::Rebuild), (100.0, [0, 0]));
        assert_eq!(act(Move::Keep), (0.0, [1, 1]));
    }
}
