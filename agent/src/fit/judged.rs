//! How good a policy is on the sweeps that it is fitted to.

use std::sync::Arc;

use dynamiccl_env::job::Shown;
use dynamiccl_env::swept::{Judgement, judge};
use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::Weights;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::math::ln;

use super::{FitError, Setup};

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
        let policy = Arc::new(Policy::new("fitted", &weights, Guard::Spreads(setup.margin), 0));
        let all = |shown| {
            let mut tuner = PolicyTuner::new(Arc::clone(&policy), None);
            let judged = setup.sweeps.iter().map(|swept| judge(swept, shown, &mut tuner));
            judged.collect::<Result<Vec<_>, _>>()
        };
        let (untold, told) = (all(Shown::NOTHING)?, all(Shown::ALL)?);
        Ok(Judged { weights, steps, untold, told })
    }

    /// The smallest share of what there is to win on a sweep that was won.
    pub fn headroom(&self) -> f64 {
        let shares = self.all().map(|judged| judged.headroom.unwrap_or(1.0));
        shares.fold(f64::INFINITY, f64::min)
    }

    /// What tells a better policy from a worse one: the mean of all that was won.
    pub(super) fn score(&self) -> f64 {
        self.all().map(|judged| ln(judged.speedup)).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Judgement> {
        self.untold.iter().chain(&self.told)
    }
}
