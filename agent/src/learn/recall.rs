//! Embeddings and memories of sequences, and their backward, on the CPU without burn.

use dynamiccl_policies::network::Shape;
use ndarray::{Array2, ArrayView1, Axis, concatenate};

use super::lstm::{Lstm, Pass};
use super::sequences::{Call, Inputs};
use crate::layers;
use crate::matrices::{add, flat, flat_mut, row, row_mut, rows, rows_mut, tanh};
use crate::params::Params;

/// What the network makes of contexts and histories.
#[derive(Debug)]
pub(super) struct Recalled<'a> {
    params: &'a Params,
    inputs: &'a Inputs,
    /// By call, after those of the calls before the sequences.
    embeddings: Array2<f32>,
    /// None where no decision sees what it leaves.
    pass: Option<Pass<'a>>,
}

/// Gradients by what decisions see.
#[derive(Debug)]
pub(super) struct ByRecalled {
    embeddings: Array2<f32>,
    hidden: Array2<f32>,
    initial: Vec<f32>,
}

impl<'a> Recalled<'a> {
    pub fn new(params: &'a Params, inputs: &'a Inputs) -> Self {
        let mut embeddings = layers::sums(params, "embed", inputs.contexts.view());
        tanh(flat_mut(&mut embeddings));
        let past = rows(embeddings.view(), 0..inputs.calls.len());
        let seen = concatenate(Axis(1), &[past, inputs.histories.view()]).expect("as many rows");
        let recalls = inputs.calls.iter().any(|call| call.state > inputs.count);
        let pass = recalls
            .then(|| lstm(params).pass(seen, &inputs.begins, inputs.hidden.view(), inputs.cell.view()));
        Recalled { params, inputs, embeddings, pass }
    }

    /// A state that decisions see, by its number.
    pub fn state(&self, at: usize) -> &[f32] {
        let count = self.inputs.count;
        match at.checked_sub(count) {
            None => row(&self.inputs.held, at),
            Some(0) => self.params.tensor("memory.hidden"),
            Some(after) => row(&self.pass.as_ref().expect("gone through").hidden, after - 1),
        }
    }

    /// The embedding of a call.
    pub fn embedding(&self, number: usize) -> &[f32] {
        row(&self.embeddings, number + self.inputs.count)
    }

    /// No gradient yet.
    pub fn zeros(&self) -> ByRecalled {
        ByRecalled {
            embeddings: Array2::zeros(self.embeddings.raw_dim()),
            hidden: Array2::zeros((self.inputs.calls.len(), self.inputs.held.ncols())),
            initial: vec![0.0; self.inputs.held.ncols()],
        }
    }

    /// Adds the gradient by the state and the embedding that a call's decision saw.
    pub fn add(&self, by: &mut ByRecalled, call: &Call, (of_state, of_embedding): (&[f32], &[f32])) {
        add(row_mut(&mut by.embeddings, call.number + self.inputs.count), of_embedding);
        match call.state.checked_sub(self.inputs.count) {
            None => {}
            Some(0) => add(&mut by.initial, of_state),
            Some(after) => add(row_mut(&mut by.hidden, after - 1), of_state),
        }
    }

    /// Puts the gradients of the parameters that lead here where these lie.
    pub fn backward(self, mut by: ByRecalled, into: &mut [f32]) {
        let layout = self.params.layout();
        let Shape { embedding, .. } = layout.shape;
        let mut put = |name: &str, numbers: &[f32]| {
            into[layout.tensor(name).range.clone()].copy_from_slice(numbers);
        };
        if let Some(pass) = self.pass {
            let gradient = lstm(self.params).backward(pass, by.hidden.view(), embedding);
            let mut of_past = rows_mut(by.embeddings.view_mut(), 0..self.inputs.calls.len());
            of_past += &gradient.seen;
            add(&mut by.initial, &gradient.hidden);
            put("lstm.weight", flat(&gradient.weight));
            put("lstm.bias", flat(&gradient.bias));
            put("memory.cell", &gradient.cell);
        }
        by.embeddings.zip_mut_with(&self.embeddings, |by, e| *by *= 1.0 - e * e);
        put("memory.hidden", &by.initial);
        layers::backward(self.params, "embed", self.inputs.contexts.view(), by.embeddings.view(), into);
    }
}

fn lstm(params: &Params) -> Lstm<'_> {
    Lstm {
        weight: params.matrix("lstm.weight"),
        bias: ArrayView1::from(params.tensor("lstm.bias")),
        hidden: params.tensor("memory.hidden"),
        cell: params.tensor("memory.cell"),
    }
}
