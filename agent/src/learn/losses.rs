//! Every loss of the update, in burn, from what the network says and what is known.

use burn::tensor::{Device, Tensor};
use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::ids::PAIRS;

use super::chosen::Targets;
use super::heads::Said;
use super::leaves::numbers;
use super::{Coefficients, Losses};

/// ln of the narrowest and the widest spread that is believed.
const SPREADS: [f32; 2] = [-5.0, 3.0];
/// ln of the largest factor by which a probability is taken to have moved.
const FARTHEST: f32 = 20.0;
/// What every −ln likelihood of a normal distribution has in common.
const HALF_LN_TAU: f32 = 0.918_938_5;
/// Numbers in [`Losses`].
const FIGURES: usize = 14;

/// The figures of [`Losses`], in the order of its fields: one number each, those that are minimised with
/// their graph.
#[derive(Debug)]
pub(super) struct Figures([Tensor<1>; FIGURES]);

impl Figures {
    /// None yet.
    pub fn new(device: &Device) -> Self {
        Figures(std::array::from_fn(|_| Tensor::zeros([1], device)))
    }

    /// The error of the critic, where each row counts `weight`.
    pub fn add_value(
        &mut self,
        value: Tensor<2>,
        old: Tensor<2>,
        returns: Tensor<2>,
        clip: f32,
        weight: f32,
    ) {
        let error = (value.clone() - returns.clone()).square();
        let error = if clip > 0.0 {
            let near = old.clone() + (value - old).clamp(-clip, clip);
            error.max_pair((near - returns).square())
        } else {
            error
        };
        self.0[1] = error.sum() * (0.5 * weight);
    }

    /// The clipped surrogate and the entropies.
    pub fn add_policy(&mut self, said: &Said, targets: &Targets, clip: f32) {
        let taken = said.ln_probabilities.iter().zip(&targets.choices);
        let taken = taken.map(|(ln, choice)| (ln.clone() * choice.clone()).sum_dim(1));
        let ln_ratio = taken.reduce(|a, b| a + b).expect("heads") - targets.old.clone();
        let ln_ratio = ln_ratio.clamp(-FARTHEST, FARTHEST);
        let (ratio, weight) = (ln_ratio.clone().exp(), &targets.drawn);
        let (near, far) = (ratio.clone().clamp(1.0 - clip, 1.0 + clip), ratio.clone());
        let worth = (far * targets.advantages.clone()).min_pair(near * targets.advantages.clone());
        self.0[0] = (worth * weight.clone()).sum().neg();
        for (head, ln) in said.ln_probabilities.iter().enumerate() {
            let entropy = (ln.clone().exp() * ln.clone()).sum_dim(1).neg();
            self.0[2 + head] = (entropy * weight.clone()).sum();
        }
        let (ratio, ln_ratio) = (ratio.detach(), ln_ratio.detach());
        let moved = (ratio.clone() - 1.0).abs().greater_elem(clip).float();
        self.0[FIGURES - 2] = ((ratio - 1.0 - ln_ratio) * weight.clone()).sum();
        self.0[FIGURES - 1] = (moved * weight.clone()).sum();
    }

    /// The likelihoods of what should have been chosen, of what it would have won, and of what every pair would
    /// have taken; and what is expected to be lost.
    pub fn add_hindsight(&mut self, [pairs, resources, gain, times, lost]: [Tensor<1>; 5], weight: f32) {
        self.0[2 + HEADS] = pairs * weight;
        self.0[3 + HEADS] = resources * weight;
        self.0[4 + HEADS] = self.0[4 + HEADS].clone() + times * weight;
        self.0[5 + HEADS] = self.0[5 + HEADS].clone() + gain * weight;
        self.0[6 + HEADS] = lost * weight;
    }

    /// The likelihoods of times and gains.
    pub fn add_estimates(&mut self, said: &Said, targets: &Targets) {
        let pair = &targets.choices[Head::Pair as usize];
        let [mean, spread] = [0, PAIRS]
            .map(|first| (said.estimates.clone().narrow(1, first, PAIRS) * pair.clone()).sum_dim(1));
        self.0[4 + HEADS] = surprise(mean, spread, &targets.times, &targets.timed);
        let [mean, spread] = [0, 1].map(|at| said.gain.clone().narrow(1, at, 1));
        self.0[5 + HEADS] = surprise(mean, spread, &targets.gains, &targets.gained);
    }

    /// What is minimised, and every figure.
    pub fn weighted(self, by: &Coefficients, device: &Device) -> (Tensor<1>, Tensor<1>) {
        let mut weights = vec![by.of.policy, by.of.value];
        weights.extend(by.of.entropy_heads.map(|of_head| -by.entropy * of_head));
        weights.extend([by.of.hindsight, by.of.resources, by.of.estimate, by.of.gain, by.of.worth, 0.0, 0.0]);
        let figures = Tensor::cat(self.0.into(), 0);
        ((figures.clone() * Tensor::from_floats(weights.as_slice(), device)).sum(), figures)
    }
}

impl Losses {
    /// The figures, read from the device.
    pub(super) fn of(figures: Tensor<1>) -> Self {
        let figures: [f32; FIGURES] = numbers(figures).try_into().expect("all figures");
        let [policy, value, path, pair, channels, chunk, threads, rest @ ..] = figures;
        let [hindsight, resources, estimate, gain, lost, divergence, clipped] = rest;
        let entropy = [path, pair, channels, chunk, threads];
        Losses { policy, value, entropy, hindsight, resources, estimate, gain, lost, divergence, clipped }
    }
}

/// −ln likelihood of numbers under normal distributions, where each counts its weight.
pub(super) fn surprise<const D: usize>(
    mean: Tensor<D>,
    ln_spread: Tensor<D>,
    truth: &Tensor<D>,
    weight: &Tensor<D>,
) -> Tensor<1> {
    let ln_spread = ln_spread.clamp(SPREADS[0], SPREADS[1]);
    let off = (truth.clone() - mean) * ln_spread.clone().neg().exp();
    ((off.square() * 0.5 + ln_spread + HALF_LN_TAU) * weight.clone()).sum()
}
