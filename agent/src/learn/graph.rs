//! Embeddings and memories of sequences as burn's tensors, for devices other than the CPU.
//!
//! Only what is not differentiated is cut into steps: a gradient of a part would be a whole with zeros,
//! once for each step.

use burn::tensor::{Device, Tensor, activation};
use ndarray::Array2;

use super::leaves::{Leaves, matrix};
use super::sequences::Inputs;

/// What the network makes of contexts and histories.
#[derive(Debug)]
pub(super) struct Graph {
    /// By call, after those of the calls before the sequences.
    pub embeddings: Tensor<2>,
    /// Those that decisions see: see [`Inputs::held`].
    pub states: Tensor<2>,
}

impl Graph {
    pub fn new(leaves: &Leaves, inputs: &Inputs, device: &Device) -> Self {
        let contexts = whole(&inputs.contexts, device);
        let histories = whole(&inputs.histories, device);
        let [mut hidden, mut cell] = [&inputs.hidden, &inputs.cell].map(|state| whole(state, device));
        let [initial_hidden, initial_cell] = ["memory.hidden", "memory.cell"].map(|name| leaves.get(name));
        let count = inputs.count;
        let mut states = vec![whole(&inputs.held, device), initial_hidden.clone()];
        let mut embeddings = Vec::new();
        for (step, begins) in inputs.begins.chunks_exact(count).enumerate() {
            let of_step = |rows: &Tensor<2>| rows.clone().narrow(0, step * count, count);
            let past = leaves.tanh_layer("embed", of_step(&contexts));
            let seen = Tensor::cat(vec![past.clone(), of_step(&histories), hidden], 1);
            let stepped = lstm_step(leaves.layer("lstm", seen), cell);
            let begins = begins.iter().map(|&begins| f32::from(u8::from(begins))).collect();
            let begins = matrix(begins, [count, 1], device);
            let or = |stepped: Tensor<2>, initial: &Tensor<2>| {
                stepped * (-begins.clone() + 1.0) + begins.clone().matmul(initial.clone())
            };
            hidden = or(stepped.0, &initial_hidden);
            cell = or(stepped.1, &initial_cell);
            embeddings.push(past);
            states.push(hidden.clone());
        }
        let last = contexts.narrow(0, inputs.calls.len(), count);
        embeddings.push(leaves.tanh_layer("embed", last));
        Graph { embeddings: Tensor::cat(embeddings, 0), states: Tensor::cat(states, 0) }
    }
}

/// h and c after a step, from the gates' sums and c before it.
fn lstm_step(sums: Tensor<2>, cell: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let gates: [Tensor<2>; 4] = sums.chunk(4, 1).try_into().expect("four gates");
    let [input, forget, candidate, output] = gates;
    let kept = activation::sigmoid(forget) * cell;
    let cell = kept + activation::sigmoid(input) * candidate.tanh();
    (activation::sigmoid(output) * cell.clone().tanh(), cell)
}

/// A plain matrix as a tensor.
pub(super) fn whole(rows: &Array2<f32>, device: &Device) -> Tensor<2> {
    matrix(rows.iter().copied().collect(), [rows.nrows(), rows.ncols()], device)
}
