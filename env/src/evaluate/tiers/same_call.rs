//! The same call at tiers 1 to 4: what NCCL, the oracle and a tuner choose for it on eight GPUs of one kind,
//! in one node, in a rack, across racks and across sites.

use dynamiccl_spec::Collective;
use serde::Serialize;

use super::Launch;
use crate::evaluate::report::{CellReport, Kind, Place, Report};

/// Regret up to which knobs are as good as the oracle's.
pub const LIMIT: f64 = 0.05;

/// Eight A100 each, at tiers 1, 2, 3 and 4.
const MACHINES: [(&str, u32); 4] = [("dgx_a100", 1), ("tier2", 8), ("tier3", 8), ("tier4", 8)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const CALLS: [(Collective, u64); 8] = [
    (Collective::AllReduce, 64 * KIB),
    (Collective::AllReduce, MIB),
    (Collective::AllReduce, 16 * MIB),
    (Collective::AllReduce, 256 * MIB),
    (Collective::AllGather, 64 * KIB),
    (Collective::AllGather, 16 * MIB),
    (Collective::ReduceScatter, 64 * KIB),
    (Collective::ReduceScatter, 16 * MIB),
];

/// What one tuner makes of the same calls at each tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SameCalls {
    /// The tuner.
    pub tuner: String,
    /// Calls at a tier.
    pub cells: usize,
    /// Those of them at which its regret is at most [`LIMIT`].
    pub within: usize,
    /// Calls for which the oracle has different knobs at different tiers.
    pub oracle_differs: usize,
    /// Those of them for which the tuner has, too.
    pub differs: usize,
    /// Whether it differs wherever the oracle does and is within the limit everywhere.
    pub passed: bool,
    /// The calls.
    pub calls: Vec<SameCall>,
}

/// One call at each tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SameCall {
    /// The collective.
    pub collective: Collective,
    /// Its size, as NCCL counts it.
    pub bytes: u64,
    /// What is chosen at each tier.
    pub tiers: Vec<AtTier>,
}

/// What is chosen for a call at one tier, each as NCCL runs it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtTier {
    /// The tier.
    pub tier: u8,
    /// The cluster.
    pub cluster: String,
    /// Its nodes.
    pub nodes: u32,
    /// NCCL's own choice.
    pub nccl: Launch,
    /// What was fastest most often.
    pub oracle: Launch,
    /// How often that was.
    pub oracle_share: f64,
    /// What the tuner chose most often.
    pub chosen: Launch,
    /// NCCL's own time over the tuner's.
    pub speedup: f64,
    /// The tuner's time over the oracle's, less 1, with feedback.
    pub regret: f64,
    /// The same without.
    pub regret_hold: Option<f64>,
    /// Regret of the best fixed knobs of the cell, where they were judged too: the least without feedback.
    pub bayes_regret: Option<f64>,
}

impl SameCalls {
    /// The clusters and nodes that it takes.
    pub fn machines() -> impl Iterator<Item = (&'static str, u32)> {
        MACHINES.into_iter()
    }

    /// What the tuner at this position did; none where it was not judged on all of these machines.
    pub fn new(report: &Report, position: usize) -> Option<Self> {
        let calls: Vec<SameCall> =
            CALLS.iter().map(|&call| SameCall::new(report, position, call)).collect::<Option<_>>()?;
        let all = || calls.iter().flat_map(|call| &call.tiers);
        let (cells, within) = (all().count(), all().filter(|at| at.regret <= LIMIT).count());
        let moving: Vec<&SameCall> = calls.iter().filter(|call| call.differs(|at| at.oracle)).collect();
        let differs = moving.iter().filter(|call| call.differs(|at| at.chosen)).count();
        let oracle_differs = moving.len();
        let passed = within == cells && differs == oracle_differs;
        let tuner = report.tuners.get(position)?.name.clone();
        Some(SameCalls { tuner, cells, within, oracle_differs, differs, passed, calls })
    }

    /// The place of the largest regret.
    pub fn worst(&self) -> Option<(&SameCall, &AtTier)> {
        let all = self.calls.iter().flat_map(|call| call.tiers.iter().map(move |at| (call, at)));
        all.reduce(|worst, other| if other.1.regret > worst.1.regret { other } else { worst })
    }
}

impl SameCall {
    fn new(report: &Report, position: usize, (collective, bytes): (Collective, u64)) -> Option<Self> {
        let bayes = report.tuners.iter().position(|tuner| tuner.kind == Kind::Bayes);
        let at = |(cluster, nodes): (&str, u32)| {
            let place = Place { cluster: cluster.to_owned(), nodes, collective, bytes };
            let cell = report.cells.iter().find(|cell| cell.place == place && !cell.held_out)?;
            AtTier::new(cell, position, bayes)
        };
        let tiers = MACHINES.into_iter().map(at).collect::<Option<_>>()?;
        Some(SameCall { collective, bytes, tiers })
    }

    /// Whether not all tiers have the same.
    fn differs(&self, of: impl Fn(&AtTier) -> Launch) -> bool {
        self.tiers.iter().any(|at| of(at) != of(&self.tiers[0]))
    }
}

impl AtTier {
    fn new(cell: &CellReport, position: usize, bayes: Option<usize>) -> Option<Self> {
        let figures = cell.tuners.get(position)?.as_ref()?;
        Some(AtTier {
            tier: cell.tier,
            cluster: cell.place.cluster.clone(),
            nodes: cell.place.nodes,
            nccl: Launch::of(&cell.own.realised),
            oracle: Launch::of(&cell.best.realised),
            oracle_share: cell.best.share,
            chosen: Launch::of(&figures.chosen.realised),
            speedup: figures.speedup,
            regret: figures.regret,
            regret_hold: figures.regret_hold,
            bayes_regret: bayes.and_then(|bayes| Some(cell.tuners.get(bayes)?.as_ref()?.regret)),
        })
    }
}
