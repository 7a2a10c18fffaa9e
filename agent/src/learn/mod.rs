//! Gradients of the losses over parts of a rollout, with burn.
//!
//! A part is some of the sequences of a rollout, whole. What is returned is this part's share of the
//! gradient of the minibatch's mean losses, so that shares of all parts only have to be added.

mod chosen;
mod critic;
mod device;
mod graph;
mod heads;
mod hindsight;
mod learner;
mod leaves;
mod losses;
pub mod lstm;
mod recall;
mod sequences;
mod tanh;
#[cfg(test)]
mod tests;
mod thoughts;
mod work;

use dynamiccl_spec::action::HEADS;

use crate::config::LossConfig;
use crate::rollout::Rollout;

pub use device::{Device, MissingDevice};
pub use learner::Learner;
pub use sequences::Sequences;

/// Some sequences of a rollout, with what the trainer has worked out about all of them.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The rollout.
    pub rollout: &'a Rollout,
    /// Which of its environments.
    pub environments: &'a [usize],
    /// What to take from each number of a context, and what to multiply it with.
    pub context_scaling: &'a [(f32, f32)],
    /// The same for history rows.
    pub history_scaling: &'a [(f32, f32)],
    /// Normalised advantages, by row of the rollout.
    pub advantages: &'a [f32],
    /// What the critic should have said, by row, in units of normalised returns.
    pub returns: &'a [f32],
    /// What it said before this update, by row.
    pub values: &'a [f32],
    /// What losses of the whole minibatch are divided by.
    pub counts: Counts,
}

/// How many rows each loss is the mean of.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    /// Rows in which something was drawn: policy and entropy.
    pub drawn: f32,
    /// All rows: value.
    pub rows: f32,
    /// Rows with a time: estimates.
    pub timed: f32,
    /// Rows with a gain.
    pub gained: f32,
    /// Rows of which every choice's worth is known.
    pub truths: f32,
}

/// Weights of the losses at this point of the schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// Those that do not change.
    pub of: LossConfig,
    /// How far a probability may move now.
    pub clip: f32,
    /// What entropy counts now.
    pub entropy: f32,
}

/// What a part adds to the gradient, and to the figures of the update.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Share {
    /// By parameter.
    pub gradient: Vec<f32>,
    /// Shares of the minibatch's mean losses.
    pub losses: Losses,
}

/// Mean losses of a minibatch, unweighted, and what else is worth watching.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Losses {
    /// The clipped surrogate.
    pub policy: f32,
    /// The critic's error.
    pub value: f32,
    /// Entropy by head.
    pub entropy: [f32; HEADS],
    /// −ln likelihood of the pairs that should have been chosen.
    pub hindsight: f32,
    /// −ln likelihood of the channels and chunks that each pair should have had.
    pub resources: f32,
    /// −ln likelihood of the times: of all pairs where hindsight knows them, else of what ran.
    pub estimate: f32,
    /// −ln likelihood of the gains.
    pub gain: f32,
    /// What is expected to be lost (ln) by choosing as the network does; below 0 is a gain.
    pub lost: f32,
    /// Divergence from the acting policy: mean of ratio − 1 − ln ratio.
    pub divergence: f32,
    /// Share of ratios that the clip holds back.
    pub clipped: f32,
}

impl Losses {
    /// What is minimised.
    pub fn total(&self, by: &Coefficients) -> f64 {
        let of = &by.of;
        let entropy: f64 = self.entropy.iter().zip(of.entropy_heads).map(|(x, of)| f64::from(x * of)).sum();
        let weighted = [
            (self.policy, of.policy),
            (self.value, of.value),
            (self.hindsight, of.hindsight),
            (self.resources, of.resources),
            (self.lost, of.worth),
            (self.estimate, of.estimate),
            (self.gain, of.gain),
        ];
        weighted.iter().map(|(x, of)| f64::from(x * of)).sum::<f64>() - f64::from(by.entropy) * entropy
    }
}

impl<'a> Part<'a> {
    /// The sequences.
    pub fn sequences(&self) -> Sequences<'a> {
        let Part { rollout, environments, context_scaling, history_scaling, .. } = *self;
        Sequences { rollout, environments, context_scaling, history_scaling }
    }
}

impl Counts {
    /// The counts of some environments of a rollout.
    pub fn of(rollout: &Rollout, environments: &[usize]) -> Self {
        let rows = || environments.iter().flat_map(|at| at * rollout.steps..(at + 1) * rollout.steps);
        let count = |of: &dyn Fn(usize) -> bool| rows().filter(|&row| of(row)).count().max(1) as f32;
        let among = |row: usize| environments.contains(&(row / rollout.steps));
        Counts {
            drawn: count(&|row| rollout.drawn[row]),
            rows: count(&|_| true),
            timed: count(&|row| !rollout.ln_times[row].is_nan()),
            gained: count(&|row| !rollout.gains[row].is_nan()),
            truths: rollout.truths.iter().filter(|truth| among(truth.row)).count().max(1) as f32,
        }
    }
}

impl Share {
    /// Both together.
    pub fn plus(mut self, other: Share) -> Self {
        self.gradient.iter_mut().zip(&other.gradient).for_each(|(sum, slope)| *sum += slope);
        self.losses.add(&other.losses, 1.0);
        self
    }
}

impl Losses {
    /// Adds others, so many times.
    pub fn add(&mut self, other: &Losses, times: f32) {
        let Losses { policy, value, entropy, hindsight, resources, .. } = other;
        let Losses { estimate, gain, lost, divergence, clipped, .. } = other;
        self.policy += times * policy;
        self.value += times * value;
        self.entropy.iter_mut().zip(entropy).for_each(|(sum, x)| *sum += times * x);
        self.hindsight += times * hindsight;
        self.resources += times * resources;
        self.estimate += times * estimate;
        self.gain += times * gain;
        self.lost += times * lost;
        self.divergence += times * divergence;
        self.clipped += times * clipped;
    }
}
