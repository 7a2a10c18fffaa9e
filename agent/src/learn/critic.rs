//! The critic: what it sees, and what it says of it. It may see what decisions may not, and nothing that it
//! learns reaches them.

use burn::tensor::{Device, Tensor};
use dynamiccl_spec::features::CONTEXT_WIDTH;

use super::leaves::{Leaves, matrix};
use super::matrices::row;
use super::sequences::Inputs;
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
    let mut numbers = Vec::with_capacity(inputs.calls.len() * width);
    for call in &inputs.calls {
        numbers.extend_from_slice(row(&inputs.contexts, call.number + inputs.count));
        let privileged = call.row * rollout.privileged_width..(call.row + 1) * rollout.privileged_width;
        numbers.extend_from_slice(&rollout.privileged[privileged]);
    }
    Seen { width, numbers }
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
