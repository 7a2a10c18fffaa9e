//! How good a policy is on the sweeps that it is fitted to.

use std::sync::Arc;

use dynamiccl_env::job::Shown;
use dynamiccl_env::swept::{Judgement, LEAST, Swept, SweptError, judge};
use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::Weights;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::math::ln;

use super::ground::Lessons;
use super::{FitError, Setup};
use crate::wide::WideTuner;

/// A policy and what it makes of the sweeps.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its weights.
    pub weights: Weights,
    /// Steps of the fit.
    pub steps: u64,
    /// Told nothing of the machine, as a plugin without a deployment file; by sweep.
    pub untold: Vec<Judgement>,
    /// Told all.
    pub told: Vec<Judgement>,
    /// Either, by what it learns from: this is what tells a better policy from a worse one.
    sure: Vec<Judgement>,
}

impl Judged {
    pub(super) fn new(
        setup: &Setup,
        lessons: &Lessons,
        weights: Weights,
        steps: u64,
    ) -> Result<Self, FitError> {
        let [untold, told] = both(&weights, &lessons.plain, setup.margin)?;
        let sure = both(&weights, &lessons.sure, setup.margin)?.concat();
        Ok(Judged { weights, steps, untold, told, sure })
    }

    /// What the same policy makes of other sweeps, taken at their word.
    pub(super) fn on(&self, sweeps: &[Arc<Swept>], margin: f32) -> Result<Self, FitError> {
        let [untold, told] = both(&self.weights, sweeps, margin)?;
        let sure = [&untold[..], &told].concat();
        Ok(Judged { weights: self.weights.clone(), steps: self.steps, untold, told, sure })
    }

    /// The smallest share of what there surely is to win on a sweep that was won.
    pub fn headroom(&self) -> f64 {
        let shares = self.sure.iter().map(|judged| judged.headroom.unwrap_or(1.0));
        shares.fold(1.0, f64::min)
    }

    /// The smallest speed-up of a cell.
    pub fn worst_cell(&self) -> f64 {
        self.sure.iter().map(|judged| judged.worst_cell).fold(f64::INFINITY, f64::min)
    }

    /// What tells a better policy from a worse one: the mean of all that was won, less what the worst cell loses beyond
    /// what it may.
    pub fn score(&self) -> f64 {
        let won: f64 = self.sure.iter().map(|judged| ln(judged.speedup)).sum();
        won / self.sure.len().max(1) as f64 + ln(self.worst_cell().min(1.0) / LEAST).min(0.0)
    }

    /// Whether this share was won on every sweep, and no cell loses more than it may.
    pub(super) fn is_enough(&self, share: f64) -> bool {
        self.headroom() >= share && self.worst_cell() >= LEAST
    }
}

/// What weights make of sweeps, told nothing of the machine and all.
fn both(weights: &Weights, sweeps: &[Arc<Swept>], margin: f32) -> Result<[Vec<Judgement>; 2], SweptError> {
    let policy = Arc::new(Policy::new("fitted", weights, Guard::Spreads(margin), 0));
    let all = |shown| {
        let mut tuner = WideTuner(PolicyTuner::new(Arc::clone(&policy), None));
        let judged = sweeps.iter().map(|swept| judge(swept, shown, &mut tuner));
        judged.collect::<Result<Vec<_>, _>>()
    };
    Ok([all(Shown::NOTHING)?, all(Shown::ALL)?])
}
