//! How good a policy is on the sweeps that it is fitted to.

use std::sync::Arc;

use dynamiccl_env::job::Shown;
use dynamiccl_env::swept::{Judgement, Swept, judge};
use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::Weights;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::math::ln;

use super::{FitError, Setup};

/// The speed-up that no cell is to be below.
const LEAST: f64 = 0.97;

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
}

impl Judged {
    pub(super) fn new(setup: &Setup, weights: Weights, steps: u64) -> Result<Self, FitError> {
        let none = Judged { weights, steps, untold: Vec::new(), told: Vec::new() };
        none.on(&setup.sweeps, setup.margin)
    }

    /// What the same policy makes of these sweeps.
    pub(super) fn on(&self, sweeps: &[Arc<Swept>], margin: f32) -> Result<Self, FitError> {
        let policy = Arc::new(Policy::new("fitted", &self.weights, Guard::Spreads(margin), 0));
        let all = |shown| {
            let mut tuner = PolicyTuner::new(Arc::clone(&policy), None);
            let judged = sweeps.iter().map(|swept| judge(swept, shown, &mut tuner));
            judged.collect::<Result<Vec<_>, _>>()
        };
        let (untold, told) = (all(Shown::NOTHING)?, all(Shown::ALL)?);
        Ok(Judged { weights: self.weights.clone(), steps: self.steps, untold, told })
    }

    /// The smallest share of what there is to win on a sweep that was won.
    pub fn headroom(&self) -> f64 {
        let shares = self.all().map(|judged| judged.headroom.unwrap_or(1.0));
        shares.fold(f64::INFINITY, f64::min)
    }

    /// The smallest speed-up of a cell.
    pub fn worst_cell(&self) -> f64 {
        self.all().map(|judged| judged.worst_cell).fold(f64::INFINITY, f64::min)
    }

    /// What tells a better policy from a worse one: the mean of all that was won, less what the worst cell loses beyond
    /// what it may.
    pub(super) fn score(&self) -> f64 {
        let won: f64 = self.all().map(|judged| ln(judged.speedup)).sum();
        won / self.all().count().max(1) as f64 + ln(self.worst_cell() / LEAST).min(0.0)
    }

    /// Whether this share was won on every sweep, and no cell loses more than it may.
    pub(super) fn is_enough(&self, share: f64) -> bool {
        self.headroom() >= share && self.worst_cell() >= LEAST
    }

    fn all(&self) -> impl Iterator<Item = &Judgement> {
        self.untold.iter().chain(&self.told)
    }
}
