//! Machines that NCCL cannot tell apart: the same NIC rate, the same graphs, the same technology, and the
//! latency of tier 2, 3 or 4.
//!
//! NCCL's cost table is the same at all three, so a tuner can only know by the tier which knobs are right.
//! Whatever it does better than with the tier hidden, it does because it has learned what a tier is.
//!
//! The best fixed knobs are the best for someone who knows the tier and nothing of the world. With feedback a
//! tuner follows each world instead, so calls are compared world by world as well.

use std::cmp::Reverse;
use std::sync::Arc;

use dynamiccl_spec::Collective;
use dynamiccl_spec::math::exp;
use serde::Serialize;

use super::Launch;
use crate::cluster::{Cluster, ClusterError, Inter};
use crate::evaluate::gathered::{Cell, Gathered, least, mean_of_seeds};
use crate::evaluate::judge::Tally;
use crate::evaluate::machines::Machine;
use crate::evaluate::report::{CellReport, Report};
use crate::nccl::Version;

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
    /// Those of the former at which they must: no knobs at all are within [`SWAP`] of the best at both tiers.
    pub must_differ: usize,
    /// Those of these at which the first tuner's do.
    pub differs_there: usize,
    /// The same world by world.
    pub by_world: ByWorld,
    /// Where the best knobs differ.
    pub contrasts: Vec<Contrast>,
}

/// Calls at two tiers in one world each: there the best knobs are those of someone who knows the world, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ByWorld {
    /// Calls at two tiers in a world.
    pub pairs: usize,
    /// Those at which the best knobs of the world differ: taking one tier's at the other costs more than [`SWAP`].
    pub oracle_differs: usize,
    /// Those of them at which what the first tuner ran most often in that world differs, too.
    pub differs: usize,
    /// Those of the former at which they must: no knobs at all are within [`SWAP`] of the best at both tiers.
    pub must_differ: usize,
    /// Those of these at which the first tuner's do.
    pub differs_there: usize,
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
                let nccl = Version::default();
                machines.push(Machine { cluster, nodes: NODES, tier, held_out: false, nccl });
            }
        }
        Ok(machines)
    }

    /// Compares what the first tuner chose on these machines; `gathered` is what was found on each, and
    /// `report` what was made of it.
    pub(in crate::evaluate) fn new(gathered: &[Gathered], report: &Report) -> Self {
        let mut reports = report.cells.iter();
        let mut machines = gathered.iter().map(|part| {
            let ran = part.players.first().map_or(&[][..], Vec::as_slice);
            let cells = part.cells.iter().zip(reports.by_ref()).enumerate();
            cells.map(|(at, (cell, report))| Seen { cell, report, at, ran }).collect::<Vec<_>>()
        });
        let (mut pairs, mut contrasts, mut by_world) = (0, Vec::new(), ByWorld::default());
        for (_, gbits) in NICS {
            let tiers: Vec<_> = machines.by_ref().take(TIERS.len()).collect();
            for (at, near) in tiers.iter().enumerate() {
                for far in &tiers[at + 1..] {
                    pairs += near.len();
                    for both in near.iter().zip(far) {
                        contrasts.extend(contrast(gbits, both));
                        by_world.count(both);
                    }
                }
            }
        }
        let count = |of: fn(&Contrast) -> bool| contrasts.iter().filter(|contrast| of(contrast)).count();
        EqualTables {
            pairs,
            oracle_differs: contrasts.len(),
            differs: count(|contrast| contrast.differs),
            held_differs: count(|contrast| contrast.held[0] != contrast.held[1]),
            must_differ: count(|contrast| contrast.shared > SWAP),
            differs_there: count(|contrast| contrast.shared > SWAP && contrast.differs),
            by_world,
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

/// A cell, and what the first tuner did there, world by world.
struct Seen<'a> {
    cell: &'a Cell,
    report: &'a CellReport,
    /// Its place in the tallies.
    at: usize,
    ran: &'a [Tally],
}

type Both<'a> = (&'a Seen<'a>, &'a Seen<'a>);

impl Seen<'_> {
    /// What ran most often in a world; none where no call was judged.
    fn usual(&self, world: usize) -> Option<usize> {
        let ran = &self.ran.get(world)?.cells.get(self.at)?.ran.0;
        ran.iter().enumerate().max_by_key(|(at, times)| (**times, Reverse(*at))).map(|(at, _)| at)
    }
}

/// How far apart the best of the same choices are at two tiers.
struct Gap {
    best: [usize; 2],
    /// What taking the best of one at the other costs, the larger of the two.
    swap: f64,
    /// The least that any choice costs at the one that it suits less.
    shared: f64,
}

impl Gap {
    /// By what each choice takes at either. What can run is the same at both: NCCL cannot tell them apart.
    fn new(own: usize, logs: [&[f64]; 2]) -> Self {
        let best = logs.map(|logs| least(own, logs));
        let worse = |at: usize| (logs[0][at] - logs[0][best[0]]).max(logs[1][at] - logs[1][best[1]]);
        let shared = (0..logs[0].len()).map(worse).fold(f64::INFINITY, f64::min);
        let cost = |log: f64| exp(log) - 1.0;
        Gap { best, swap: cost(worse(best[0]).max(worse(best[1]))), shared: cost(shared) }
    }
}

/// The contrast between two tiers; none where the best knobs of one are as good at the other.
fn contrast(gbits: u32, (near, far): Both<'_>) -> Option<Contrast> {
    let logs = [near, far].map(|seen| mean_of_seeds(&seen.cell.logs));
    let Gap { best, swap, shared } = Gap::new(near.cell.own, [&logs[0], &logs[1]]);
    if swap <= SWAP {
        return None;
    }
    let best = best.map(|at| Launch::of(&near.cell.choices[at].1));
    let figures = [near.report.tuners.first()?.as_ref()?, far.report.tuners.first()?.as_ref()?];
    let chosen = figures.map(|figures| Launch::of(&figures.chosen.realised));
    let held = [figures[0].held?, figures[1].held?].map(|held| Launch::of(&held.realised));
    let (collective, bytes) = (near.report.place.collective, near.report.place.bytes);
    let (tiers, differs) = ([near.report.tier, far.report.tier], chosen[0] != chosen[1]);
    Some(Contrast { gbits, collective, bytes, tiers, best, chosen, held, swap, shared, differs })
}

impl ByWorld {
    /// Counts a call at two tiers in every world.
    fn count(&mut self, (near, far): Both<'_>) {
        for (world, logs) in near.cell.logs.iter().zip(&far.cell.logs).enumerate() {
            let gap = Gap::new(near.cell.own, [logs.0, logs.1]);
            let differs = usize::from(near.usual(world) != far.usual(world));
            self.pairs += 1;
            if gap.swap > SWAP {
                self.oracle_differs += 1;
                self.differs += differs;
            }
            if gap.shared > SWAP {
                self.must_differ += 1;
                self.differs_there += differs;
            }
        }
    }
}
