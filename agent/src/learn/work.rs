//! One share of a gradient: the same losses over memories that either we or burn differentiate.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::chosen::Chosen;
use super::critic;
use super::graph::{Graph, whole};
use super::heads::{self, FIRST, heads};
use super::hindsight::Lesson;
use super::leaves::{Leaves, matrix, numbers};
use super::losses::Figures;
use super::recall::Recalled;
use super::sequences::{Call, Inputs};
use super::tanh::Tanh;
use super::thoughts::Thoughts;
use super::{Coefficients, Losses, Part, Share};
use crate::critic::Opinion;
use crate::params::Params;

/// What a share is worked out from.
#[derive(Debug)]
pub(super) struct Work<'a> {
    params: &'a Params,
    part: &'a Part<'a>,
    coefficients: &'a Coefficients,
    device: Device,
    inputs: Inputs,
    chosen: Chosen,
}

impl<'a> Work<'a> {
    pub fn new(
        params: &'a Params,
        part: &'a Part<'a>,
        coefficients: &'a Coefficients,
        device: Device,
    ) -> Self {
        let inputs = Inputs::new(&part.sequences(), params.layout().shape.memory);
        let chosen = Chosen::new(part.rollout, &inputs);
        Work { params, part, coefficients, device, inputs, chosen }
    }

    /// With a backward of our own for all but losses and resources.
    pub fn on_cpu(&self) -> Share {
        let recalled = Recalled::new(self.params, &self.inputs);
        let leaves = Leaves::new(self.params, &self.device, Tanh::Host, |name| !is_ours(name));
        let thoughts = Thoughts::new(self.params, &self.chosen, &recalled);
        let first = thoughts.first().map(|sums| self.leaf(sums, self.chosen.calls.len()));
        let by_critic = critic::seen(self.part.rollout, &self.inputs, |call| recalled.state(call.state));
        let opinion = Opinion::new(self.params, by_critic);
        let values = self.leaf(opinion.values.clone(), self.inputs.calls.len());
        let (total, figures) = self.losses(&leaves, || first.clone(), values.clone());
        let mut gradients = total.backward();
        let mut gradient = vec![0.0; self.params.values().len()];
        leaves.collect(&mut gradients, &mut gradient);
        let mut by = |leaf: Tensor<2>| leaf.grad_remove(&mut gradients).map(numbers);
        if let Some(by_values) = by(values) {
            opinion.backward(by_values, &mut gradient);
        }
        let by_recalled = thoughts.backward(first.map(by), &mut gradient);
        recalled.backward(by_recalled, &mut gradient);
        Share { gradient, losses: Losses::of(figures) }
    }

    /// With burn differentiating everything.
    pub fn on_graph(&self) -> Share {
        let leaves = Leaves::new(self.params, &self.device, Tanh::Device, |_| true);
        let Graph { embeddings, states } = Graph::new(&leaves, &self.inputs, &self.device);
        let states_of =
            |states: &Tensor<2>, calls: &[Call]| self.pick(states, calls.iter().map(|call| call.state));
        let seen = self.roles().map(|(role, calls)| {
            let numbers = calls.iter().map(|call| call.number + self.inputs.count);
            let parts = vec![states_of(&states, calls), self.pick(&embeddings, numbers)];
            (role, Tensor::cat(parts, 1))
        });
        let by_critic = whole(&critic::seen(self.part.rollout, &self.inputs, |_| &[]), &self.device);
        let constant = states.clone().detach();
        let by_critic = Tensor::cat(vec![by_critic, states_of(&constant, &self.inputs.calls)], 1);
        let values = critic::says(&leaves, by_critic);
        let (total, figures) = self.losses(&leaves, || heads::first(&leaves, seen), values);
        let mut gradient = vec![0.0; self.params.values().len()];
        leaves.collect(&mut total.backward(), &mut gradient);
        Share { gradient, losses: Losses::of(figures) }
    }

    /// The loss, and all figures of the share. `first` has the sums of the first layers, if there are decisions to learn
    /// from.
    fn losses(
        &self,
        leaves: &Leaves,
        first: impl FnOnce() -> [Tensor<2>; 4],
        values: Tensor<2>,
    ) -> (Tensor<1>, Tensor<1>) {
        let (part, device) = (self.part, &self.device);
        let mut figures = Figures::new(device);
        let column = |of: &[f32]| {
            let numbers: Vec<f32> = self.inputs.calls.iter().map(|call| of[call.row]).collect();
            matrix(numbers, [self.inputs.calls.len(), 1], device)
        };
        let (old, returns) = (column(part.values), column(part.returns));
        let (clip, weight) = (self.coefficients.of.value_clip, 1.0 / part.counts.rows);
        figures.add_value(values, old, returns, clip, weight);
        if !self.chosen.calls.is_empty() {
            let targets = self.chosen.targets(part, device);
            let said = heads(leaves, first(), &targets);
            figures.add_policy(&said, &targets, self.coefficients.clip);
            figures.add_estimates(&said, &targets);
            let by = &self.coefficients.of;
            if let Some(lesson) = Lesson::new(part.rollout, &self.chosen, by, device) {
                figures.add_hindsight(lesson.losses(leaves, &said), 1.0 / part.counts.truths);
            }
        }
        figures.weighted(self.coefficients, device)
    }

    fn roles(&self) -> impl Iterator<Item = (usize, &[Call])> {
        self.chosen.roles.iter().map(|(role, range)| (*role, &self.chosen.calls[range.clone()]))
    }

    /// Numbers in as many rows, to be differentiated by.
    fn leaf(&self, numbers: Vec<f32>, rows: usize) -> Tensor<2> {
        let columns = numbers.len() / rows.max(1);
        matrix(numbers, [rows, columns], &self.device).require_grad()
    }

    fn pick(&self, rows: &Tensor<2>, numbers: impl Iterator<Item = usize>) -> Tensor<2> {
        let numbers: Vec<i32> = numbers.map(|at| at as i32).collect();
        let count = numbers.len();
        let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, [count]), &self.device);
        rows.clone().select(0, numbers)
    }
}

/// Whether a parameter is not burn's to differentiate: it leads to the sums of the first heads, or is the critic's.
fn is_ours(name: &str) -> bool {
    let (layer, part) = name.split_once('.').unwrap_or((name, ""));
    let below = ["embed", "lstm", "memory", "expert", "address", "critic"].contains(&layer);
    below || FIRST.contains(&layer) && ["weight", "bias"].contains(&part)
}
