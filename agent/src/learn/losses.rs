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

// Where each number of [`Losses`] stands among the figures.
const POLICY: usize = 0;
const VALUE: usize = 1;
/// That of the first head; the others follow.
const ENTROPY: usize = 2;
const HINDSIGHT: usize = ENTROPY + HEADS;
const RESOURCES: usize = HINDSIGHT + 1;
const ESTIMATE: usize = RESOURCES + 1;
const GAIN: usize = ESTIMATE + 1;
const LOST: usize = GAIN + 1;
const DIVERGENCE: usize = LOST + 1;
const CLIPPED: usize = DIVERGENCE + 1;
/// How many they are.
const FIGURES: usize = CLIPPED + 1;

/// The figures of [`Losses`]: one number each, those that are minimised with their graph.
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
        self.0[VALUE] = error.sum() * (0.5 * weight);
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
        self.0[POLICY] = (worth * weight.clone()).sum().neg();
        for (head, ln) in said.ln_probabilities.iter().enumerate() {
            let entropy = (ln.clone().exp() * ln.clone()).sum_dim(1).neg();
            self.0[ENTROPY + head] = (entropy * weight.clone()).sum();
        }
        let (ratio, ln_ratio) = (ratio.detach(), ln_ratio.detach());
        let moved = (ratio.clone() - 1.0).abs().greater_elem(clip).float();
        self.0[DIVERGENCE] = ((ratio - 1.0 - ln_ratio) * weight.clone()).sum();
        self.0[CLIPPED] = (moved * weight.clone()).sum();
    }

    /// The likelihoods of what should have been chosen, of what it would have won, and of what every pair would
    /// have taken; and what is expected to be lost.
    pub fn add_hindsight(&mut self, [pairs, resources, gain, times, lost]: [Tensor<1>; 5], weight: f32) {
        self.0[HINDSIGHT] = pairs * weight;
        self.0[RESOURCES] = resources * weight;
        self.0[ESTIMATE] = self.0[ESTIMATE].clone() + times * weight;
        self.0[GAIN] = self.0[GAIN].clone() + gain * weight;
        self.0[LOST] = lost * weight;
    }

    /// The likelihoods of times and gains.
    pub fn add_estimates(&mut self, said: &Said, targets: &Targets) {
        let pair = &targets.choices[Head::Pair as usize];
        let [mean, spread] = [0, PAIRS]
            .map(|first| (said.estimates.clone().narrow(1, first, PAIRS) * pair.clone()).sum_dim(1));
        self.0[ESTIMATE] = surprise(mean, spread, &targets.times, &targets.timed);
        let [mean, spread] = [0, 1].map(|at| said.gain.clone().narrow(1, at, 1));
        self.0[GAIN] = surprise(mean, spread, &targets.gains, &targets.gained);
    }

    /// What is minimised, and every figure.
    pub fn weighted(self, by: &Coefficients, device: &Device) -> (Tensor<1>, Tensor<1>) {
        let by_figure = [
            (POLICY, by.of.policy),
            (VALUE, by.of.value),
            (HINDSIGHT, by.of.hindsight),
            (RESOURCES, by.of.resources),
            (ESTIMATE, by.of.estimate),
            (GAIN, by.of.gain),
            (LOST, by.of.worth),
        ];
        let of_heads = (ENTROPY..).zip(by.of.entropy_heads.map(|of_head| -by.entropy * of_head));
        // What is only watched counts nothing.
        let mut weights = [0.0; FIGURES];
        by_figure.into_iter().chain(of_heads).for_each(|(figure, weight)| weights[figure] = weight);
        let figures = Tensor::cat(self.0.into(), 0);
        ((figures.clone() * Tensor::from_floats(weights.as_slice(), device)).sum(), figures)
    }
}

impl Losses {
    /// The figures, read from the device.
    pub(super) fn of(figures: Tensor<1>) -> Self {
        let figures: [f32; FIGURES] = numbers(figures).try_into().expect("all figures");
        Losses {
            policy: figures[POLICY],
            value: figures[VALUE],
            entropy: std::array::from_fn(|head| figures[ENTROPY + head]),
            hindsight: figures[HINDSIGHT],
            resources: figures[RESOURCES],
            estimate: figures[ESTIMATE],
            gain: figures[GAIN],
            lost: figures[LOST],
            divergence: figures[DIVERGENCE],
            clipped: figures[CLIPPED],
        }
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
