//! How sure a policy must be before it departs from NCCL's choice: several margins judged in the same worlds,
//! and the one that gains most without ever losing much.
//!
//! The worlds are kept ones of another seed than `eval` has by default, and held-out clusters take no part:
//! what is chosen here must not have seen what it is judged by. No margin is told what calls take, for no plugin is.

use std::sync::Arc;

use anyhow::{Context, Error, Result, ensure};
use dynamiccl_agent::WideTuner;
use dynamiccl_env::evaluate::{Entrant, Evaluation, Machine, NODES, Report as Judged};
use dynamiccl_env::headroom::sizes;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use serde::Serialize;

use crate::args::ExportArgs;
use crate::session::{Session, cores};

/// Margins that are tried, beside the one that the policy has.
const MARGINS: [f32; 11] = [-2.0, -1.0, 0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0];
/// The smallest speed-up of any cell that a margin may lead to.
const LEAST: f64 = 0.98;
/// What is added to the seed, so that no world is one of `eval` with the same seed.
const VALIDATION: u64 = 0x7a11_da7e;

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Calibration {
    /// The margin that the policy had.
    pub from: f32,
    /// The one that it has now.
    pub margin: f32,
    /// Whether a margin was found that loses nowhere more than it may.
    pub safe: bool,
    /// Machines that were judged on.
    pub machines: usize,
    /// Worlds on each.
    pub worlds: u32,
    /// Every margin that was tried.
    pub margins: Vec<Tried>,
}

/// One margin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tried {
    /// The margin.
    pub margin: f32,
    /// NCCL's own time over the policy's.
    pub speedup: f64,
    /// The policy's time over the oracle's, less 1, call by call.
    pub regret: f64,
    /// The same with each kind of call decided as a job's first.
    pub regret_hold: f64,
    /// The smallest speed-up of a cell.
    pub worst_cell: f64,
    /// Share of calls that were left to NCCL.
    pub fallback_share: f64,
}

/// The policy with the margin that is best for it.
pub fn calibrate(source: &Frozen, args: &ExportArgs, session: &Session) -> Result<(Frozen, Calibration)> {
    let machines = machines(args)?;
    let own = source.about.margin;
    let mut margins = MARGINS.to_vec();
    if !margins.contains(&own) {
        margins.push(own);
        margins.sort_by(f32::total_cmp);
    }
    let constants = ConstantsFile::full();
    let evaluation = Evaluation {
        seed: session.seed.wrapping_add(VALIDATION),
        seeds: 1,
        worlds: args.worlds,
        threads: cores(),
        constants: &constants,
        schedules: None,
    };
    let progress = session.progress("guard", evaluation.steps(machines.len()));
    let entrants: Vec<Entrant> = margins.iter().map(|&margin| entrant(source, margin)).collect();
    let step = || progress.advance(1).map_err(Error::from);
    let judged = evaluation.cells(&machines, &sizes(), &entrants, step)?;
    drop(progress);
    let margins = tried(&judged, &margins)?;
    let (margin, safe) = pick(&margins, own);
    let (machines, worlds) = (machines.len(), args.worlds);
    Ok((with_margin(source, margin), Calibration { from: own, margin, safe, machines, worlds, margins }))
}

/// The policy with this margin.
pub fn with_margin(source: &Frozen, margin: f32) -> Frozen {
    let mut frozen = source.clone();
    if margin != source.about.margin {
        frozen.about.margin = margin;
        // What was reached was reached with the other margin.
        frozen.about.results.clear();
    }
    frozen
}

/// Every machine that training may have met, or the one that was named.
fn machines(args: &ExportArgs) -> Result<Vec<Machine>> {
    let clusters: Vec<String> = args.machine.cluster.iter().cloned().collect();
    let named = args.nodes.map(|nodes| vec![nodes]);
    let mut machines = Machine::list(&clusters, named.as_deref().unwrap_or(&NODES), &[0, 1, 2, 3, 4])?;
    machines.retain(|machine| !clusters.is_empty() || !machine.held_out);
    ensure!(!machines.is_empty(), "no machine is left: this cluster has no graphs for so many --nodes");
    Ok(machines)
}

fn entrant(source: &Frozen, margin: f32) -> Entrant {
    let policy =
        Policy::new(source.about.name.clone(), &source.weights, Guard::Spreads(margin), source.hash());
    let policy = Arc::new(policy);
    let make = move |_| Box::new(WideTuner(PolicyTuner::new(Arc::clone(&policy), None))) as _;
    Entrant::tuner(&format!("margin {margin}"), make)
}

fn tried(judged: &Judged, margins: &[f32]) -> Result<Vec<Tried>> {
    let tried = judged.tuners.iter().zip(margins).map(|(tuner, &margin)| {
        let figures = tuner.verdict().context("no call was judged")?;
        Ok(Tried {
            margin,
            speedup: figures.speedup,
            regret: figures.regret,
            regret_hold: figures.regret_hold,
            worst_cell: figures.worst_cell,
            fallback_share: figures.fallback_share,
        })
    });
    tried.collect()
}

/// The margin with the lowest regret among those that lose nowhere more than they may, and whether there is
/// one; without, the one whose worst cell is the best. Among equals the policy keeps its own, or gets the
/// largest.
fn pick(tried: &[Tried], own: f32) -> (f32, bool) {
    let safe: Vec<&Tried> = tried.iter().filter(|tried| tried.worst_cell >= LEAST).collect();
    let found = !safe.is_empty();
    let among = if found { safe } else { tried.iter().collect() };
    let cost = |tried: &Tried| if found { tried.regret } else { -tried.worst_cell };
    let least = among.iter().map(|tried| cost(tried)).fold(f64::INFINITY, f64::min);
    let best: Vec<f32> =
        among.iter().filter(|tried| cost(tried) <= least).map(|tried| tried.margin).collect();
    let largest = best.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (if best.contains(&own) || best.is_empty() { own } else { largest }, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(margin: f32, regret: f64, worst_cell: f64) -> Tried {
        Tried { margin, speedup: 1.0, regret, regret_hold: regret, worst_cell, fallback_share: 0.0 }
    }

    #[test]
    fn the_lowest_regret_wins_among_what_is_safe() {
        let sweep = [tried(0.0, 0.02, 0.9), tried(0.5, 0.04, 0.98), tried(1.0, 0.05, 0.99)];
        assert_eq!(pick(&sweep, 1.0), (0.5, true));
    }

    #[test]
    fn where_nothing_is_safe_the_least_loss_wins_and_it_is_said() {
        let sweep = [tried(0.0, 0.02, 0.5), tried(0.5, 0.04, 0.9), tried(1.0, 0.05, 0.8)];
        assert_eq!(pick(&sweep, 1.0), (0.5, false));
    }

    #[test]
    fn a_policy_that_never_departs_keeps_its_margin() {
        let sweep = [0.0, 0.5, 1.25, 3.0].map(|margin| tried(margin, 0.16, 1.0));
        assert_eq!(pick(&sweep, 1.25), (1.25, true));
        assert_eq!(pick(&sweep, 9.0), (3.0, true));
    }
}
