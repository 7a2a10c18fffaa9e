//! What the critic says of a rollout before anything is learned from it: one forward pass in plain Rust.
//!
//! Its gradient is the learner's; both read the same tensors.

use dynamiccl_policies::network::activation::tanh_all;
use dynamiccl_spec::features::CONTEXT_WIDTH;
use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul};

use crate::normal::normalise;
use crate::params::Params;
use crate::rollout::Rollout;

/// Values in units of normalised returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// By row.
    pub rows: Vec<f32>,
    /// By entry of [`Rollout::afters`].
    pub afters: Vec<f32>,
}

impl Values {
    /// What the critic says of every row and of what comes after.
    pub fn of(params: &Params, rollout: &Rollout, scaling: &[(f32, f32)]) -> Self {
        let memory = params.layout().shape.memory;
        let width = CONTEXT_WIDTH + rollout.privileged_width + memory;
        let seen = |row: usize| &rollout.seen[row * memory..][..memory];
        let mut inputs = Vec::with_capacity((rollout.rows() + rollout.afters.len()) * width);
        let mut add = |context: &[f32], privileged: &[f32], seen: &[f32]| {
            let at = inputs.len();
            inputs.extend_from_slice(context);
            normalise(scaling, &mut inputs[at..]);
            inputs.extend_from_slice(privileged);
            inputs.extend_from_slice(seen);
        };
        for environment in 0..rollout.environments {
            let contexts = rollout.contexts_of(environment)[CONTEXT_WIDTH..].chunks_exact(CONTEXT_WIDTH);
            for (call, context) in contexts.enumerate() {
                let row = environment * rollout.steps + call;
                let privileged = &rollout.privileged[row * rollout.privileged_width..];
                add(context, &privileged[..rollout.privileged_width], seen(row));
            }
        }
        rollout.afters.iter().for_each(|after| add(&after.context, &after.privileged, seen(after.row)));
        let mut rows = forward(params, &inputs, width);
        let afters = rows.split_off(rollout.rows());
        Values { rows, afters }
    }
}

fn forward(params: &Params, inputs: &[f32], width: usize) -> Vec<f32> {
    let critic = params.layout().critic;
    let mut first = layer(params, ["critic.first.weight", "critic.first.bias"], inputs, width, critic);
    tanh_all(&mut first);
    let mut second = layer(params, ["critic.second.weight", "critic.second.bias"], &first, critic, critic);
    tanh_all(&mut second);
    layer(params, ["critic.value.weight", "critic.value.bias"], &second, critic, 1)
}

fn layer(params: &Params, [weight, bias]: [&str; 2], inputs: &[f32], from: usize, to: usize) -> Vec<f32> {
    let rows = inputs.len() / from;
    let mut sums: Vec<f32> = params.tensor(bias).iter().copied().cycle().take(rows * to).collect();
    let shaped = "as many numbers as rows and columns say";
    let inputs = ArrayView2::from_shape((rows, from), inputs).expect(shaped);
    let weight = ArrayView2::from_shape((from, to), params.tensor(weight)).expect(shaped);
    let mut into = ArrayViewMut2::from_shape((rows, to), &mut sums).expect(shaped);
    general_mat_mul(1.0, &inputs, &weight, 1.0, &mut into);
    sums
}
