//! Machines that NCCL cannot tell apart: the same NIC rate, the same graphs, the same technology, and the
//! latency of tier 2, 3 or 4.
//!
//! NCCL's cost table is the same at all three, so a tuner can only know by the tier which knobs are right.
//! Whatever it does better than with the tier hidden, it does because it has learned what a tier is.
//!
//! The best fixed knobs are the best for someone who knows the tier and nothing of the world. With feedback a
//! tuner follows each world instead, so that not even what is fastest most often differs wherever they do.

use std::sync::Arc;

use dynamiccl_spec::math::exp;
use dynamiccl_spec::{Choice, Collective};
use serde::Serialize;

use super::Launch;
use crate::cluster::{Cluster, ClusterError, Inter};
use crate::evaluate::gathered::{Cell, Gathered};
use crate::evaluate::machines::Machine;
use crate::evaluate::report::{CellReport, Report};

/// What taking the best knobs of one tier at another must cost before they count as different.
pub const SWAP: f64 = 0.05;

/// The tiers between which nothing differs but the latency.
const TIERS: [u8; 3] = [2, 3, 4];
/// Clusters whose NICs and graphs the machines have, and their Gb/s: rates between tier 2's and tier 4's.
const NICS: [(&str, u32); 2] = [("tier3", 50), ("ib100g_1gpu", 100)];
/// The cluster that is the same in everything else.
const BASE: &str = "tier3";
const NODES: u32 = 8;

/// What tuners made of machines that NCCL cannot tell apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EqualTables {
    /// Calls at two tiers that were compared.
    pub pairs: usize,
    /// Those at which the best knobs differ: taking one tier's at the other costs more than [`SWAP`].
    pub oracle_differs: usize,
    /// Those of them at which the first tuner's knobs differ, too.
    pub differs: usize,
    /// Those of them at which what it decides without feedback differs.
    pub held_differs: usize,
    /// Those of them at which what was fastest most often differs: no feedback tells more.
    pub fastest_differs: usize,
    /// Those of the former at which they must: no knobs at all are within [`SWAP`] of the best at both tiers.
    pub must_differ: usize,
    /// Those of these at which the first tuner's do.
    pub differs_there: usize,
    /// Where the best knobs differ.
    pub contrasts: Vec<Contrast>,
}

/// A call whose best knobs are not the same at two tiers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// Gb/s of the NICs.
    pub gbits: u32,
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// The two tiers.
    pub tiers: [u8; 2],
    /// The best fixed knobs at each.
    pub best: [Launch; 2],
    /// What the tuner chose most often at each.
    pub chosen: [Launch; 2],
    /// What it decides at each without feedback.
    pub held: [Launch; 2],
    /// What was fastest most often.
    pub fastest: [Launch; 2],
    /// What taking the best knobs of one at the other costs, the larger of the two.
    pub swap: f64,
    /// What the knobs that suit both tiers best cost at the one that they suit less.
    pub shared: f64,
    /// Whether the tuner's knobs differ.
    pub differs: bool,
}

impl EqualTables {
    /// The machines, by NIC and then by tier.
    pub fn machines() -> Result<Vec<Machine>, ClusterError> {
        let mut machines = Vec::new();
        for (nics, gbits) in NICS {
            for tier in TIERS {
                let cluster = Arc::new(cluster(nics, gbits, tier)?);
                machines.push(Machine { cluster, nodes: NODES, tier, held_out: false });
            }
        }
        Ok(machines)
    }

    /// Compares what the first tuner chose on these machines; `gathered` is what was found on each, and
    /// `report` what was made of it.
    pub(in crate::evaluate) fn new(gathered: &[Gathered], report: &Report) -> Self {
        let mut reports = report.cells.iter();
        let mut found =
            gathered.iter().map(|part| part.cells.iter().zip(reports.by_ref()).collect::<Vec<_>>());
        let (mut pairs, mut contrasts) = (0, Vec::new());
        for (_, gbits) in NICS {
            let tiers: Vec<_> = found.by_ref().take(TIERS.len()).collect();
            for (at, near) in tiers.iter().enumerate() {
                for far in &tiers[at + 1..] {
                    pairs += near.len();
                    let both = near.iter().zip(far).filter_map(|(near, far)| contrast(gbits, *near, *far));
                    contrasts.extend(both);
                }
            }
        }
        let count = |of: fn(&Contrast) -> bool| contrasts.iter().filter(|contrast| of(contrast)).count();
        EqualTables {
            pairs,
            oracle_differs: contrasts.len(),
            differs: count(|contrast| contrast.differs),
            held_differs: count(|contrast| contrast.held[0] != contrast.held[1]),
            fastest_differs: count(|contrast| contrast.fastest[0] != contrast.fastest[1]),
            must_differ: count(|contrast| contrast.shared > SWAP),
            differs_there: count(|contrast| contrast.shared > SWAP && contrast.differs),
            contrasts,
        }
    }
}

/// A cluster of this tier's latency with the NICs of another.
fn cluster(nics: &str, gbits: u32, tier: u8) -> Result<Cluster, ClusterError> {
    let (mut cluster, nics) = (Cluster::load(BASE)?.moved_to(tier)?, Cluster::load(nics)?);
    cluster.inter = cluster.inter.zip(nics.inter).map(|(own, nics)| Inter {
        nic_rate: nics.nic_rate,
        bandwidth: nics.bandwidth,
        ..own
    });
    cluster.graphs = nics.graphs;
    cluster.name = format!("equal{gbits}g_tier{tier}");
    cluster.description = format!("8 A100 over {gbits} Gb/s RDMA with the latency of tier {tier}");
    Ok(cluster)
}

type Both<'a> = (&'a Cell, &'a CellReport);

/// The contrast between two tiers; none where the best knobs of one are as good at the other.
fn contrast(gbits: u32, near: Both<'_>, far: Both<'_>) -> Option<Contrast> {
    let swap = Some(lost(near.0, far.0)?.max(lost(far.0, near.0)?)).filter(|swap| *swap > SWAP)?;
    let best = |(cell, _): Both<'_>| cell.choices.get(cell.best()).map(|(_, realised)| Launch::of(realised));
    let best = [best(near)?, best(far)?];
    let figures = [near.1.tuners.first()?.as_ref()?, far.1.tuners.first()?.as_ref()?];
    let chosen = figures.map(|figures| Launch::of(&figures.chosen.realised));
    let held = [figures[0].held?, figures[1].held?].map(|held| Launch::of(&held.realised));
    let fastest = [near, far].map(|(_, report)| Launch::of(&report.best.realised));
    let (collective, bytes) = (near.1.place.collective, near.1.place.bytes);
    let (tiers, differs) = ([near.1.tier, far.1.tier], chosen[0] != chosen[1]);
    let shared = shared(near.0, far.0)?;
    Some(Contrast { gbits, collective, bytes, tiers, best, chosen, held, fastest, swap, shared, differs })
}

/// What taking the best knobs of one cell in another costs there.
fn lost(from: &Cell, at: &Cell) -> Option<f64> {
    at.loss(&from.choices.get(from.best())?.0)
}

/// The least that any knobs cost in the one of two cells that they suit less.
fn shared(near: &Cell, far: &Cell) -> Option<f64> {
    let worse = near.choices.iter().filter_map(|(choice, _)| Some(near.loss(choice)?.max(far.loss(choice)?)));
    worse.reduce(f64::min)
}

impl Cell {
    /// What these fixed knobs cost more than the best; none where they cannot run.
    fn loss(&self, choice: &Choice) -> Option<f64> {
        let at = self.choices.iter().position(|(known, _)| known == choice)?;
        Some(exp(self.mean_logs.get(at)? - self.mean_logs.get(self.best())?) - 1.0)
    }

    /// The fixed knobs with the least mean ln time; NCCL's own where none is better.
    fn best(&self) -> usize {
        let logs = &self.mean_logs;
        logs.iter().enumerate().fold(self.own, |best, (at, log)| if *log < logs[best] { at } else { best })
    }
}
