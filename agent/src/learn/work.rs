//! One share of a gradient: the same losses over memories that either we or burn differentiate.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::chosen::Chosen;
use super::critic;
use super::graph::Graph;
use super::heads::heads;
use super::hindsight::Lesson;
use super::leaves::{Leaves, matrix, numbers};
use super::losses::Figures;
use super::recall::{ByRecalled, Recalled};
use super::sequences::{Call, Inputs};
use super::tanh::Tanh;
use super::{Coefficients, Losses, Part, Share};
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

    /// With a backward of our own below the heads.
    pub fn on_cpu(&self) -> Share {
        let recalled = Recalled::new(self.params, &self.inputs);
        let leaves = Leaves::new(self.params, &self.device, Tanh::Host, |name| !below_heads(name));
        let seen: Vec<_> = self.roles().map(|(role, calls)| (role, self.seen(&recalled, calls))).collect();
        let states = self.inputs.calls.iter().map(|call| recalled.state(call.state));
        let by_critic = critic::seen(self.part.rollout, &self.inputs);
        let by_critic = critic::joined(&by_critic, states, &self.device);
        let (total, figures) = self.losses(&leaves, seen.clone(), by_critic);
        let mut gradients = total.backward();
        let mut gradient = vec![0.0; self.params.values().len()];
        leaves.collect(&mut gradients, &mut gradient);
        let mut by = recalled.zeros();
        for ((_, calls), (_, seen)) in self.roles().zip(seen) {
            if let Some(by_seen) = seen.grad_remove(&mut gradients) {
                self.add(&recalled, &mut by, calls, &numbers(by_seen));
            }
        }
        recalled.backward(by, &mut gradient);
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
        let seen = seen.collect();
        let by_critic = critic::seen(self.part.rollout, &self.inputs).tensor(&self.device);
        let constant = states.detach();
        let by_critic = Tensor::cat(vec![by_critic, states_of(&constant, &self.inputs.calls)], 1);
        let (total, figures) = self.losses(&leaves, seen, by_critic);
        let mut gradient = vec![0.0; self.params.values().len()];
        leaves.collect(&mut total.backward(), &mut gradient);
        Share { gradient, losses: Losses::of(figures) }
    }

    /// The loss, and all figures of the share.
    fn losses(
        &self,
        leaves: &Leaves,
        seen: Vec<(usize, Tensor<2>)>,
        by_critic: Tensor<2>,
    ) -> (Tensor<1>, Tensor<1>) {
        let (part, device) = (self.part, &self.device);
        let mut figures = Figures::new(device);
        let column = |of: &[f32]| {
            let numbers: Vec<f32> = self.inputs.calls.iter().map(|call| of[call.row]).collect();
            matrix(numbers, [self.inputs.calls.len(), 1], device)
        };
        let (old, returns) = (column(part.values), column(part.returns));
        let (clip, weight) = (self.coefficients.of.value_clip, 1.0 / part.counts.rows);
        figures.add_value(critic::says(leaves, by_critic), old, returns, clip, weight);
        if !seen.is_empty() {
            let targets = self.chosen.targets(part, device);
            let said = heads(leaves, seen, &targets);
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

    /// What the expert of some calls sees, to be differentiated by.
    fn seen(&self, recalled: &Recalled<'_>, calls: &[Call]) -> Tensor<2> {
        let shape = self.params.layout().shape;
        let width = shape.memory + shape.embedding;
        let mut numbers = Vec::with_capacity(calls.len() * width);
        for call in calls {
            numbers.extend_from_slice(recalled.state(call.state));
            numbers.extend_from_slice(recalled.embedding(call.number));
        }
        matrix(numbers, [calls.len(), width], &self.device).require_grad()
    }

    /// Adds the gradient by what the expert of some calls sees.
    fn add(&self, recalled: &Recalled<'_>, by: &mut ByRecalled, calls: &[Call], by_seen: &[f32]) {
        let shape = self.params.layout().shape;
        for (call, by_seen) in calls.iter().zip(by_seen.chunks_exact(shape.memory + shape.embedding)) {
            recalled.add(by, call, by_seen.split_at(shape.memory));
        }
    }

    fn pick(&self, rows: &Tensor<2>, numbers: impl Iterator<Item = usize>) -> Tensor<2> {
        let numbers: Vec<i32> = numbers.map(|at| at as i32).collect();
        let count = numbers.len();
        let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, [count]), &self.device);
        rows.clone().select(0, numbers)
    }
}

/// Whether a parameter leads to embeddings and memories.
fn below_heads(name: &str) -> bool {
    ["embed.", "lstm.", "memory."].iter().any(|part| name.starts_with(part))
}
