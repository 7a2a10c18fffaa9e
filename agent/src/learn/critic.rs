//! The critic: what it sees, and what it says of it. It may see what decisions may not, and nothing that it
//! learns reaches them.

use burn::tensor::{Device, Tensor};
use dynamiccl_spec::features::CONTEXT_WIDTH;

use super::learner::Next;
use super::leaves::{Leaves, matrix, numbers};
use super::matrices::row;
use super::sequences::{Inputs, Sequences};
use crate::normal::normalise;
use crate::rollout::Rollout;

/// Rows of what the critic sees beside a state of the LSTM: context, then what is privileged.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    width: usize,
    numbers: Vec<f32>,
}

/// What it sees of every call, in the order of their numbers.
pub(super) fn seen(rollout: &Rollout, inputs: &Inputs) -> Seen {
    let width = CONTEXT_WIDTH + rollout.privileged_width;
    let mut numbers = Vec::with_capacity((inputs.calls.len() + inputs.count) * width);
    for call in &inputs.calls {
        numbers.extend_from_slice(row(&inputs.contexts, call.number + inputs.count));
        let privileged = call.row * rollout.privileged_width..(call.row + 1) * rollout.privileged_width;
        numbers.extend_from_slice(&rollout.privileged[privileged]);
    }
    Seen { width, numbers }
}

/// Adds what it sees of the calls that come after sequences.
pub(super) fn add_next(seen: &mut Seen, next: &Next<'_>, of: &Sequences<'_>) {
    let privileged = of.rollout.privileged_width;
    for (at, context) in next.contexts.chunks_exact(CONTEXT_WIDTH).enumerate() {
        let begin = seen.numbers.len();
        seen.numbers.extend_from_slice(context);
        normalise(of.context_scaling, &mut seen.numbers[begin..]);
        seen.numbers.extend_from_slice(&next.privileged[at * privileged..][..privileged]);
    }
}

impl Seen {
    /// As a tensor, without states.
    pub fn tensor(self, device: &Device) -> Tensor<2> {
        let rows = self.numbers.len() / self.width;
        matrix(self.numbers, [rows, self.width], device)
    }
}

/// Everything that it sees: each row with its state.
pub(super) fn joined<'a>(seen: &Seen, states: impl Iterator<Item = &'a [f32]>, device: &Device) -> Tensor<2> {
    let (mut numbers, mut rows) = (Vec::new(), 0);
    for (seen, state) in seen.numbers.chunks_exact(seen.width).zip(states) {
        numbers.extend_from_slice(seen);
        numbers.extend_from_slice(state);
        rows += 1;
    }
    let width = numbers.len() / rows.max(1);
    matrix(numbers, [rows, width], device)
}

/// What it says.
pub(super) fn says(leaves: &Leaves, seen: Tensor<2>) -> Tensor<2> {
    let first = leaves.tanh_layer("critic.first", seen);
    let second = leaves.tanh_layer("critic.second", first);
    leaves.layer("critic.value", second)
}

/// What it says, as numbers.
pub(super) fn values(leaves: &Leaves, seen: Tensor<2>) -> Vec<f32> {
    numbers(says(leaves, seen))
}
