//! A minibatch of whole sequences: its advantages in usual units, its shards on threads.

use dynamiccl_env::threads::each;
use dynamiccl_policies::random::Random;

use super::Judged;
use crate::config::Config;
use crate::learn::{Coefficients, Counts, Learner, Part, Share};
use crate::params::Params;
use crate::rollout::{Rollout, Source};

/// Some sequences of a rollout.
pub(super) struct Minibatch<'a> {
    rollout: &'a Rollout,
    judged: &'a Judged,
    environments: &'a [usize],
    scalings: [&'a [(f32, f32)]; 2],
    /// By row of the rollout; only those of this minibatch mean anything.
    advantages: Vec<f32>,
}

/// The environments of a rollout in another order, dealt out to so many minibatches. Those that see the history
/// come first in each, so that others share no shard with them and cost no step of the LSTM.
pub(super) fn shuffled(rollout: &Rollout, minibatches: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..rollout.environments).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    let recalls = |at: &usize| {
        let sources = &rollout.sources[at * rollout.steps..(at + 1) * rollout.steps];
        sources.iter().any(|source| *source != Source::Initial)
    };
    order.sort_by_key(|at| !recalls(at));
    let minibatches = minibatches.clamp(1, order.len().max(1));
    (0..minibatches).map(|first| order.iter().skip(first).step_by(minibatches).copied().collect()).collect()
}

impl<'a> Minibatch<'a> {
    pub fn new(
        rollout: &'a Rollout,
        judged: &'a Judged,
        environments: &'a [usize],
        scalings: [&'a [(f32, f32)]; 2],
    ) -> Self {
        let advantages = usual_advantages(rollout, &judged.advantages, environments);
        Minibatch { rollout, judged, environments, scalings, advantages }
    }

    /// Gradient and losses of the minibatch.
    pub fn gradient(
        &self,
        learner: &Learner,
        params: &Params,
        coefficients: &Coefficients,
        config: &Config,
        threads: usize,
    ) -> Share {
        let counts = Counts::of(self.rollout, self.environments);
        let size = self.environments.len().div_ceil(config.optimiser.shards.max(1)).max(1);
        let mut shards: Vec<&[usize]> = self.environments.chunks(size).collect();
        let shares = each(threads, &mut shards, |_, environments| {
            let part = Part {
                rollout: self.rollout,
                environments,
                context_scaling: self.scalings[0],
                history_scaling: self.scalings[1],
                advantages: &self.advantages,
                returns: &self.judged.returns,
                values: &self.judged.values,
                counts,
            };
            learner.gradient(params, &part, coefficients)
        });
        shares.into_iter().reduce(Share::plus).unwrap_or_default()
    }
}

/// Advantages of what was drawn in some environments, less their mean, divided by their spread.
fn usual_advantages(rollout: &Rollout, advantages: &[f32], environments: &[usize]) -> Vec<f32> {
    let rows = environments.iter().flat_map(|at| at * rollout.steps..(at + 1) * rollout.steps);
    let rows: Vec<usize> = rows.filter(|&row| rollout.drawn[row]).collect();
    let count = rows.len().max(1) as f64;
    let mean = rows.iter().map(|&row| f64::from(advantages[row])).sum::<f64>() / count;
    let square = rows.iter().map(|&row| (f64::from(advantages[row]) - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (square.sqrt() + 1e-8);
    let mut usual = vec![0.0; rollout.rows()];
    rows.iter().for_each(|&row| usual[row] = ((f64::from(advantages[row]) - mean) * scale) as f32);
    usual
}
