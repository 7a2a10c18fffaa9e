//! What a ring is expected to take some collectives from now, given its links as they were seen.
//!
//! On its way back to the middle a link's hidden number scatters (`traffic`), and a ring is as slow as its slowest
//! link: what is expected of it is more than what the expected links would give, the more so the more of them are
//! nearly as slow as the slowest. The chance that none is slower than some bandwidth is a product over the links,
//! and the mean an integral over that.

use std::sync::LazyLock;

use dynamiccl_spec::math::{exp, ln, normal_below, normal_quantile};

use super::traffic::Sample;
use super::{Ring, Routes, Setting};

/// Bandwidths between which chances are taken to change evenly.
const GRID: usize = 16;
/// Beyond it, a hidden number is at the end of its range.
const END: f64 = 3.0;
/// The least that links scatter, so that a chance is never a step.
const LEAST_SCATTER: f64 = 0.05;

/// The links as they were seen, as numbers that go back to 0.
#[derive(Debug)]
pub struct Outlook<'a> {
    setting: &'a Setting,
    /// The hidden number of each link.
    hidden: Vec<f64>,
    /// Gbit/s, rising.
    grid: [f64; GRID],
    /// The hidden number at which a link inside, and one between datacentres, has each bandwidth of the grid.
    levels: [[f64; GRID]; 2],
    correlation: f64,
}

/// Links some collectives from now.
#[derive(Debug)]
pub struct Later<'a> {
    outlook: &'a Outlook<'a>,
    /// Of each link that was asked for: the chance that it has at least each bandwidth of the grid.
    chances: Vec<Option<[f64; GRID]>>,
    stays: f64,
    scatter: f64,
}

impl<'a> Outlook<'a> {
    /// From links as they were seen, and how alike they have been from one collective to the next.
    pub fn new(setting: &'a Setting, seen: &Sample, correlation: f64) -> Self {
        let hidden = |(link, gbps): (usize, &f64)| level(setting.range(link), *gbps).clamp(-END, END);
        let hidden = seen.links().iter().enumerate().map(hidden).collect();
        // A ring crosses, and is inside: its slowest link is between the least of all and the lesser most.
        let low = setting.inside_gbps[0].min(setting.between_gbps[0]);
        let high = setting.inside_gbps[1].min(setting.between_gbps[1]).max(low * 1.001);
        let step = ln(high / low) / (GRID - 1) as f64;
        let grid = std::array::from_fn(|at| low * exp(step * at as f64));
        let levels =
            [setting.inside_gbps, setting.between_gbps].map(|range| grid.map(|gbps| level(range, gbps)));
        Outlook { setting, hidden, grid, levels, correlation: correlation.clamp(1e-6, 1.0) }
    }

    /// The links after so many collectives.
    pub fn after(&'a self, collectives: f64) -> Later<'a> {
        self.where_stays(exp(collectives * ln(self.correlation)))
    }

    /// The links when nothing is left of how they were seen.
    pub fn usually(&'a self) -> Later<'a> {
        self.where_stays(0.0)
    }

    fn where_stays(&'a self, stays: f64) -> Later<'a> {
        let scatter = (1.0 - stays * stays).max(0.0).sqrt().max(LEAST_SCATTER);
        Later { outlook: self, chances: vec![None; self.hidden.len()], stays, scatter }
    }
}

/// The hidden number of a link with this bandwidth, as [`super::Traffic`] has them.
fn level([low, high]: [f64; 2], gbps: f64) -> f64 {
    match gbps {
        gbps if gbps <= low => f64::NEG_INFINITY,
        gbps if gbps >= high => f64::INFINITY,
        gbps => normal_quantile((gbps - low) / (high - low)),
    }
}

/// Numbers of which the share below is known are this far apart, and reach so far.
const APART: f64 = 1.0 / 64.0;
const FARTHEST: f64 = 6.0;

/// The share of a normal distribution below `x`, to 1e-4: a thousand are asked for before every collective.
fn nearly_below(x: f64) -> f64 {
    static KNOWN: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let count = (2.0 * FARTHEST / APART) as usize;
        (0..=count + 1).map(|at| normal_below(at as f64 * APART - FARTHEST)).collect()
    });
    let at = (x.clamp(-FARTHEST, FARTHEST) + FARTHEST) / APART;
    let (below, share) = (at as usize, at.fract());
    KNOWN[below] + share * (KNOWN[below + 1] - KNOWN[below])
}

impl Later<'_> {
    /// Expected ms of a collective on this ring over these routes, without what signals take.
    pub fn time(&mut self, ring: &Ring, routes: &Routes) -> f64 {
        let setting = self.outlook.setting;
        let mut none_slower = [1.0; GRID];
        setting.each_link(ring, routes, |link| {
            let chances = self.chances(link);
            none_slower.iter_mut().zip(chances).for_each(|(all, one)| *all *= one);
        });
        none_slower[0] = 1.0;
        none_slower[GRID - 1] = 0.0;
        let ms = self.outlook.grid.map(|gbps| setting.ms(gbps));
        let between = |at: usize| (none_slower[at] - none_slower[at + 1]) * 0.5 * (ms[at] + ms[at + 1]);
        (0..GRID - 1).map(between).sum::<f64>() * setting.schedule.total()
    }

    fn chances(&mut self, link: usize) -> [f64; GRID] {
        let Later { outlook, stays, scatter, .. } = *self;
        *self.chances[link].get_or_insert_with(|| {
            let (middle, each) = (stays * outlook.hidden[link], 1.0 / scatter);
            let levels = &outlook.levels[usize::from(outlook.setting.network.is_between(link))];
            levels.map(|level| nearly_below((middle - level) * each))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::{Arrangement, Network, Traffic, Work};

    /// Mean ms over traffic that goes on from one moment, told apart by streams of noise.
    #[test]
    fn it_is_what_traffic_comes_to_on_the_average() {
        let mut setting = Setting::new(Network::even(2, 4, 2).unwrap()).unwrap();
        (setting.delay_ms, setting.inside_delay_ms) = (0.0, 0.0);
        let usual = Arrangement::usual(&setting.network);
        let (rho, ahead, mut work) = (0.9, 10, Work::default());
        let mut off = Vec::new();
        for seed in 0..12 {
            let mut traffic = Traffic::new(&setting, rho, seed, 0);
            let seen = traffic.next_sample();
            let expected =
                Outlook::new(&setting, &seen, rho).after(f64::from(ahead)).time(&usual.ring, &usual.routes);
            let mean = (0..400)
                .map(|stream| {
                    let mut future = traffic.branch(stream);
                    (1..ahead).for_each(|_| drop(future.next_sample()));
                    work.time(&setting, &usual, &future.next_sample())
                })
                .sum::<f64>()
                / 400.0;
            off.push(expected / mean - 1.0);
        }
        let mean = off.iter().sum::<f64>() / off.len() as f64;
        assert!(mean.abs() < 0.02, "{off:?}");
        assert!(off.iter().all(|off| off.abs() < 0.1), "{off:?}");
    }

    #[test]
    fn what_is_near_counts_and_what_is_far_is_alike() {
        let setting = Setting::new(Network::even(2, 4, 2).unwrap()).unwrap();
        let usual = Arrangement::usual(&setting.network);
        let time = |gbps: [f64; 2], ahead: f64| {
            let between = |link| usize::from(setting.network.is_between(link));
            let seen = Sample::of((0..setting.network.links()).map(|link| gbps[between(link)]));
            Outlook::new(&setting, &seen, 0.9).after(ahead).time(&usual.ring, &usual.routes)
        };
        let (slow, fast) = ([30.0, 15.0], [180.0, 90.0]);
        assert!(time(slow, 1.0) > 2.0 * time(fast, 1.0));
        assert!((time(slow, 200.0) / time(fast, 200.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn shares_that_are_looked_up_are_near_enough() {
        for at in -700..=700 {
            let x = f64::from(at) / 100.0;
            assert!((nearly_below(x) - normal_below(x)).abs() < 1e-4, "{x}");
        }
        assert!(nearly_below(f64::INFINITY) > 0.9999 && nearly_below(f64::NEG_INFINITY) < 1e-4);
    }
}
