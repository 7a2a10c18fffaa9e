//! All that stays the same from one collective to the next: the network, what is sent, how hops forward.

use std::str::FromStr;

use dynamiccl_spec::Collective;
use dynamiccl_spec::words::{UnknownWord, look_up};
use serde::Serialize;

use super::clock::Hop;
use super::traffic::Sample;
use super::{Arrangement, Network, Ring, Routes, Schedule, WanError, Work};

/// ms that a chunk of 1 MB takes at 1 Gbit/s.
const MS_PER_MB: f64 = 8.0;

/// How border routers pass a message on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Forwarding {
    /// As it comes in: a crossing is as slow as the slowest of its links.
    CutThrough,
    /// Once they have all of it, as GPUs do.
    StoreAndForward,
}

impl FromStr for Forwarding {
    type Err = UnknownWord;

    fn from_str(s: &str) -> Result<Self, UnknownWord> {
        let known =
            [("cut-through", Forwarding::CutThrough), ("store-and-forward", Forwarding::StoreAndForward)];
        look_up("forwarding", s, &known)
    }
}

/// What stays the same from one collective to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Datacentres and links.
    pub network: Network,
    /// The rounds of the collective.
    pub schedule: Schedule,
    /// MB of a chunk.
    pub chunk_mb: f64,
    /// ms that a signal takes from one datacentre to another.
    pub delay_ms: f64,
    /// ms that it takes over a link inside.
    pub inside_delay_ms: f64,
    /// How border routers pass messages on.
    pub forwarding: Forwarding,
    /// Least and most Gbit/s inside a datacentre.
    pub inside_gbps: [f64; 2],
    /// Least and most Gbit/s between datacentres.
    pub between_gbps: [f64; 2],
}

impl Setting {
    /// An allgather of 32 MB chunks over a WAN of 1 ms, with the bandwidths of the study that this reproduces.
    pub fn new(network: Network) -> Result<Self, WanError> {
        let schedule = Schedule::new(Collective::AllGather, network.gpus())?;
        Ok(Setting {
            network,
            schedule,
            chunk_mb: 32.0,
            delay_ms: 1.0,
            inside_delay_ms: 1e-3,
            forwarding: Forwarding::CutThrough,
            inside_gbps: [20.0, 200.0],
            between_gbps: [10.0, 100.0],
        })
    }

    /// The same with another collective.
    pub fn with_collective(self, collective: Collective) -> Result<Self, WanError> {
        let schedule = Schedule::new(collective, self.network.gpus())?;
        Ok(Setting { schedule, ..self })
    }

    /// An error where a number makes no sense.
    pub fn check(&self) -> Result<(), WanError> {
        let above = |x: f64| x > 0.0 && x.is_finite();
        if !above(self.chunk_mb) {
            return Err(WanError::value("MB of a chunk", self.chunk_mb, "give more than 0"));
        }
        for (what, ms) in
            [("ms between datacentres", self.delay_ms), ("ms inside a datacentre", self.inside_delay_ms)]
        {
            if !(ms >= 0.0 && ms.is_finite()) {
                return Err(WanError::value(what, ms, "give a time from 0 up"));
            }
        }
        for (what, [low, high]) in
            [("Gbit/s inside", self.inside_gbps), ("Gbit/s between datacentres", self.between_gbps)]
        {
            if !above(low) || !above(high) || low > high {
                let value = format!("{low} to {high}");
                return Err(WanError::value(what, value, "give two numbers above 0, the smaller first"));
            }
        }
        Ok(())
    }

    /// ms of a collective where nobody chooses and every link is in the middle of its range.
    pub(super) fn middle_ms(&self) -> f64 {
        let middle = |link: usize| self.range(link).iter().sum::<f64>() / 2.0;
        let sample = Sample::of((0..self.network.links()).map(middle));
        Work::default().time(self, &Arrangement::usual(&self.network), &sample)
    }

    /// A hop inside a datacentre.
    #[inline]
    pub(super) fn inside(&self, sample: &Sample, from: usize, to: usize) -> Hop {
        let gbps = sample.gbps(self.network.inside(from, to));
        Hop::one(self.ms(gbps), self.inside_delay_ms)
    }

    /// A hop to another datacentre on this route.
    #[inline]
    pub(super) fn crossing(&self, sample: &Sample, from: usize, to: usize, route: usize) -> Hop {
        let [up, across, down] = self.network.crossing(from, to, route).map(|link| sample.gbps(link));
        let (inside, between) = (self.inside_delay_ms, self.delay_ms);
        match self.forwarding {
            Forwarding::CutThrough => Hop::one(self.ms(up.min(across).min(down)), between + 2.0 * inside),
            Forwarding::StoreAndForward => {
                Hop::three([up, across, down].map(|gbps| self.ms(gbps)), [inside, between, inside])
            }
        }
    }

    /// The route to another datacentre whose slowest link is the fastest, and of equals the first.
    #[inline]
    pub(super) fn widest(&self, sample: &Sample, from: usize, to: usize) -> usize {
        let width = |route: usize| {
            let [up, across, down] = self.network.crossing(from, to, route).map(|link| sample.gbps(link));
            up.min(across).min(down)
        };
        let mut best = (0, width(0));
        for route in 1..self.network.routes(from, to) {
            let width = width(route);
            if width > best.1 {
                best = (route, width);
            }
        }
        best.0
    }

    /// Least and most Gbit/s of a link.
    pub(super) fn range(&self, link: usize) -> [f64; 2] {
        if self.network.is_between(link) { self.between_gbps } else { self.inside_gbps }
    }

    /// Every link that a ring goes over.
    pub(super) fn each_link(&self, ring: &Ring, routes: &Routes, mut each: impl FnMut(usize)) {
        let mut routes = routes.0.iter();
        for (from, to) in ring.hops() {
            if self.network.home(from) == self.network.home(to) {
                each(self.network.inside(from, to));
            } else {
                let route = routes.next().copied().unwrap_or_default();
                self.network.crossing(from, to, route.into()).into_iter().for_each(&mut each);
            }
        }
    }

    /// ms of a chunk.
    #[inline]
    pub(super) fn ms(&self, gbps: f64) -> f64 {
        MS_PER_MB * self.chunk_mb / gbps
    }
}
