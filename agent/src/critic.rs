//! The critic in plain Rust: what it says of rows, and the gradient of what it said.
//!
//! Nothing that it learns reaches decisions, so it may see what they may not.

use dynamiccl_spec::features::CONTEXT_WIDTH;
use ndarray::Array2;

use crate::layers;
use crate::matrices::{flat_mut, product, tanh};
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
        let inputs = Array2::from_shape_vec((inputs.len() / width, width), inputs).expect("whole rows");
        let mut rows = Opinion::new(params, inputs).values;
        let afters = rows.split_off(rollout.rows());
        Values { rows, afters }
    }
}

/// What the critic makes of rows, layer by layer, as the backward needs it.
#[derive(Debug)]
pub(crate) struct Opinion<'a> {
    params: &'a Params,
    inputs: Array2<f32>,
    first: Array2<f32>,
    second: Array2<f32>,
    /// What it says: a number for each row.
    pub values: Vec<f32>,
}

impl<'a> Opinion<'a> {
    /// Of rows with all that it sees: context, what is privileged, a state of the LSTM.
    pub fn new(params: &'a Params, inputs: Array2<f32>) -> Self {
        let mut first = layers::sums(params, "critic.first", inputs.view());
        tanh(flat_mut(&mut first));
        let mut second = layers::sums(params, "critic.second", first.view());
        tanh(flat_mut(&mut second));
        let values = layers::sums(params, "critic.value", second.view()).into_raw_vec_and_offset().0;
        Opinion { params, inputs, first, second, values }
    }

    /// Adds the gradient of its parameters where these lie, given that by what it said.
    pub fn backward(&self, by_values: Vec<f32>, into: &mut [f32]) {
        let mut by = Array2::from_shape_vec((by_values.len(), 1), by_values).expect("a number for each row");
        for (name, seen) in
            [("critic.value", &self.second), ("critic.second", &self.first), ("critic.first", &self.inputs)]
        {
            layers::backward(self.params, name, seen.view(), by.view(), into);
            if name != "critic.first" {
                by = product(by.view(), self.params.matrix(&format!("{name}.weight")).t());
                by.zip_mut_with(seen, |by, y| *by *= 1.0 - y * y);
            }
        }
    }
}
