//! What `eval --proof tiers` found, as its document has it.

use dynamiccl_env::evaluate::tiers::{EqualTables, SameCalls};
use dynamiccl_env::evaluate::{Figures, Report as Judged, TunerReport};
use serde::Serialize;

use crate::args::EvalArgs;

/// The document.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Always: no number here was measured.
    pub simulated: bool,
    /// Independent repetitions.
    pub seeds: u32,
    /// Worlds of each.
    pub worlds: u32,
    /// The policy.
    pub policy: String,
    /// The same call at each tier.
    pub same_call: SameCalls,
    /// Calls that NCCL cannot tell apart.
    pub equal_tables: Equal,
    /// Whether all of it holds.
    pub passed: bool,
}

/// What was found where NCCL's tables are equal.
#[derive(Debug, Serialize)]
pub struct Equal {
    /// What was compared.
    #[serde(flatten)]
    pub compared: EqualTables,
    /// The policy, the same with less told, NCCL and the best fixed knobs.
    pub tuners: Vec<Told>,
    /// Whether the policy's knobs differ in every world in which no knobs are right at both tiers.
    pub follows: bool,
    /// Whether hiding the tier raises its regret, with feedback and without.
    pub hiding_hurts: bool,
}

/// Regret of one of them.
#[derive(Debug, Serialize)]
pub struct Told {
    /// Its name.
    pub name: String,
    /// What it was not told.
    pub hidden: Vec<&'static str>,
    /// Over all tiers.
    pub regret: f64,
    /// The same without feedback.
    pub regret_hold: f64,
    /// By tier.
    pub tiers: Vec<AtTier>,
}

/// Regret at one tier.
#[derive(Debug, Serialize)]
pub struct AtTier {
    /// The tier.
    pub tier: u8,
    /// With feedback.
    pub regret: f64,
    /// Without.
    pub regret_hold: f64,
}

impl Report {
    /// Joins what was found.
    pub fn new(args: &EvalArgs, policy: String, same_call: SameCalls, equal_tables: Equal) -> Self {
        let passed = same_call.passed && equal_tables.follows && equal_tables.hiding_hurts;
        let (seeds, worlds) = (args.seeds, args.worlds);
        Report { simulated: true, seeds, worlds, policy, same_call, equal_tables, passed }
    }
}

impl Equal {
    /// What was found; `hidden` are those that are told less, first of which is the tier.
    pub fn new<const N: usize>(
        compared: EqualTables,
        judged: &Judged,
        hidden: [(&'static str, &[&'static str]); N],
    ) -> Self {
        let told = |tuner: &TunerReport| {
            let hidden = hidden.iter().find(|(name, _)| *name == tuner.name);
            Told::new(tuner, hidden.map_or(&[], |(_, features)| features))
        };
        let tuners: Vec<Told> = judged.tuners.iter().filter_map(told).collect();
        let follows = compared.by_world.differs_there == compared.by_world.must_differ;
        let hiding_hurts = matches!(&tuners[..], [policy, untold, ..]
            if untold.regret > policy.regret && untold.regret_hold > policy.regret_hold);
        Equal { compared, tuners, follows, hiding_hurts }
    }
}

impl Told {
    fn new(tuner: &TunerReport, hidden: &[&'static str]) -> Option<Self> {
        let Figures { regret, regret_hold, .. } = *tuner.overall.as_ref()?;
        let at = |tier: u8, of: &Figures| AtTier { tier, regret: of.regret, regret_hold: of.regret_hold };
        let tiers = tuner.tiers.iter().map(|report| at(report.tier, &report.figures)).collect();
        Some(Told { name: tuner.name.clone(), hidden: hidden.to_vec(), regret, regret_hold, tiers })
    }
}
