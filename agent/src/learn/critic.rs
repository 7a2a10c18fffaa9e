//! What the critic sees of the calls to learn from, and what it says of it as burn's tensors; on the CPU
//! [`crate::critic`] says it.

use burn::tensor::Tensor;
use dynamiccl_spec::features::CONTEXT_WIDTH;
use ndarray::Array2;

use super::leaves::Leaves;
use super::sequences::{Call, Inputs};
use crate::matrices::row;
use crate::rollout::Rollout;

/// What it sees of every call, in the order of their numbers: context, what is privileged, then a state.
pub(super) fn seen<'a>(
    rollout: &Rollout,
    inputs: &Inputs,
    state: impl Fn(&Call) -> &'a [f32],
) -> Array2<f32> {
    let (calls, privileged) = (&inputs.calls, rollout.privileged_width);
    let width = CONTEXT_WIDTH + privileged + calls.first().map_or(0, |call| state(call).len());
    let mut numbers = Vec::with_capacity(calls.len() * width);
    for call in calls {
        numbers.extend_from_slice(row(&inputs.contexts, call.number + inputs.count));
        numbers.extend_from_slice(&rollout.privileged[call.row * privileged..][..privileged]);
        numbers.extend_from_slice(state(call));
    }
    Array2::from_shape_vec((calls.len(), width), numbers).expect("whole rows")
}

/// What it says, where burn differentiates it.
pub(super) fn says(leaves: &Leaves, seen: Tensor<2>) -> Tensor<2> {
    let first = leaves.tanh_layer("critic.first", seen);
    let second = leaves.tanh_layer("critic.second", first);
    leaves.layer("critic.value", second)
}
