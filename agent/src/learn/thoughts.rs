//! From memories and embeddings to the sums of the first heads, and back, on the CPU without burn.

use std::ops::Range;

use dynamiccl_policies::network::{BANDS, EXPERTS};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, Slice};

use super::chosen::Chosen;
use super::heads::FIRST;
use super::recall::{ByRecalled, Recalled};
use crate::layers;
use crate::matrices::{
    Before, add, flat, flat_mut, layer, multiply, product, row, row_mut, rows, rows_mut, tanh,
};
use crate::params::Params;

/// What is thought of the calls to learn from.
#[derive(Debug)]
pub(super) struct Thoughts<'a, 'r> {
    params: &'a Params,
    chosen: &'a Chosen,
    recalled: &'a Recalled<'r>,
    embeddings: Array2<f32>,
    /// How much each band of the memory counts for a call.
    addresses: Array2<f32>,
    /// What the heads see: what the expert of a call's role says, then what the call reads from the memory, its cells
    /// band by band, weighed by the address.
    seen: Array2<f32>,
}

impl<'a, 'r> Thoughts<'a, 'r> {
    pub fn new(params: &'a Params, chosen: &'a Chosen, recalled: &'a Recalled<'r>) -> Self {
        let shape = params.layout().shape;
        let embeddings =
            chosen.calls.iter().flat_map(|call| recalled.embedding(call.number)).copied().collect();
        let embeddings =
            Array2::from_shape_vec((chosen.calls.len(), shape.embedding), embeddings).expect("whole rows");
        let addresses = layers::sums(params, "address", embeddings.view());
        let mut seen = Vec::with_capacity(chosen.calls.len() * (shape.expert + shape.read()));
        for (role, calls) in &chosen.roles {
            let (weight, bias) = expert(params, *role);
            let mut said = layer(rows(embeddings.view(), calls.clone()), weight, bias);
            tanh(flat_mut(&mut said));
            for (at, call) in calls.clone().enumerate() {
                let address = row(&addresses, call);
                let read = |cells: &[f32]| {
                    cells.iter().zip(address).map(|(cell, weight)| cell * weight).sum::<f32>()
                };
                seen.extend_from_slice(row(&said, at));
                seen.extend(recalled.state(chosen.calls[call].state).chunks(BANDS).map(read));
            }
        }
        let seen = Array2::from_shape_vec((chosen.calls.len(), shape.expert + shape.read()), seen)
            .expect("whole rows");
        Thoughts { params, chosen, recalled, embeddings, addresses, seen }
    }

    /// The sums of the [`FIRST`] layers, each call after call.
    pub fn first(&self) -> [Vec<f32>; 4] {
        FIRST.map(|name| layers::sums(self.params, name, self.seen.view()).into_raw_vec_and_offset().0)
    }

    /// Puts the gradients of the parameters that lead here where these lie, given those by the sums of the [`FIRST`]
    /// layers; gives those by memories and embeddings.
    pub fn backward(&self, by_first: [Option<Vec<f32>>; 4], into: &mut [f32]) -> ByRecalled {
        let shape = self.params.layout().shape;
        let mut by_experts = self.by_seen(by_first, into);
        let mut by_addresses = Array2::zeros(self.addresses.raw_dim());
        let mut by_states = Array2::zeros((self.chosen.calls.len(), shape.memory));
        for (at, call) in self.chosen.calls.iter().enumerate() {
            let (by_expert, by_read) = row_mut(&mut by_experts, at).split_at_mut(shape.expert);
            for (by, y) in by_expert.iter_mut().zip(row(&self.seen, at)) {
                *by *= 1.0 - y * y;
            }
            let (address, by_address) = (row(&self.addresses, at), row_mut(&mut by_addresses, at));
            let state = self.recalled.state(call.state);
            let bands = state.chunks(BANDS).zip(row_mut(&mut by_states, at).chunks_mut(BANDS));
            for ((cells, by_cells), by_read) in bands.zip(by_read) {
                cells.iter().zip(&mut *by_address).for_each(|(cell, by)| *by += *by_read * cell);
                by_cells.iter_mut().zip(address).for_each(|(by, weight)| *by = *by_read * weight);
            }
        }
        let by_experts = by_experts.slice_axis(Axis(1), Slice::from(0..shape.expert));
        let by_embeddings = self.by_embeddings(by_experts, by_addresses.view(), into);
        let mut by = self.recalled.zeros();
        for (at, call) in self.chosen.calls.iter().enumerate() {
            self.recalled.add(&mut by, call, (row(&by_states, at), row(&by_embeddings, at)));
        }
        by
    }

    /// The gradient by what the first layers see; those of their parameters are put where these lie.
    fn by_seen(&self, by_first: [Option<Vec<f32>>; 4], into: &mut [f32]) -> Array2<f32> {
        let mut by_seen = Array2::zeros(self.seen.raw_dim());
        for (name, by) in FIRST.into_iter().zip(by_first) {
            let Some(by) = by else { continue };
            let weight = self.params.matrix(&format!("{name}.weight"));
            let by = Array2::from_shape_vec((self.seen.nrows(), weight.ncols()), by).expect("whole rows");
            layers::backward(self.params, name, self.seen.view(), by.view(), into);
            multiply(by.view(), weight.reversed_axes(), by_seen.view_mut(), Before::Kept);
        }
        by_seen
    }

    /// The gradient by the embeddings, given those by the sums of experts and addresses; those of their parameters are
    /// put where these lie.
    fn by_embeddings(
        &self,
        by_experts: ArrayView2<'_, f32>,
        by_addresses: ArrayView2<'_, f32>,
        into: &mut [f32],
    ) -> Array2<f32> {
        let layout = self.params.layout();
        layers::backward(self.params, "address", self.embeddings.view(), by_addresses, into);
        let mut by = product(by_addresses, self.params.matrix("address.weight").reversed_axes());
        for (role, calls) in &self.chosen.roles {
            let by_expert = rows(by_experts, calls.clone());
            let embeddings = rows(self.embeddings.view(), calls.clone());
            let [of_weight, of_bias] = EXPERT.map(|name| of_role(layout.tensor(name).range.clone(), *role));
            add(&mut into[of_weight], flat(&product(embeddings.reversed_axes(), by_expert)));
            add(&mut into[of_bias], flat(&by_expert.sum_axis(Axis(0))));
            let weight = expert(self.params, *role).0.reversed_axes();
            multiply(by_expert, weight, rows_mut(by.view_mut(), calls.clone()), Before::Kept);
        }
        by
    }
}

/// The tensors of experts: those of each role, one after the other.
const EXPERT: [&str; 2] = ["expert.weight", "expert.bias"];

/// What of a tensor of experts is one role's.
fn of_role(range: Range<usize>, role: usize) -> Range<usize> {
    let length = range.len() / EXPERTS;
    range.start + role * length..range.start + (role + 1) * length
}

/// Weights and biases of a role's expert.
fn expert(params: &Params, role: usize) -> (ArrayView2<'_, f32>, ArrayView1<'_, f32>) {
    let shape = params.layout().shape;
    let [weight, bias] =
        EXPERT.map(|name| &params.values()[of_role(params.layout().tensor(name).range.clone(), role)]);
    let weight =
        ArrayView2::from_shape((shape.embedding, shape.expert), weight).expect("the layout's own dimensions");
    (weight, ArrayView1::from(bias))
}
