//! Layers of the network by their names, and their backward, in plain Rust.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use crate::matrices::{add, flat, layer, product};
use crate::params::Params;

/// The sums of a layer: inputs × weight + bias.
pub(crate) fn sums(params: &Params, name: &str, inputs: ArrayView2<'_, f32>) -> Array2<f32> {
    let [weight, bias] = parts(name);
    layer(inputs, params.matrix(&weight), ArrayView1::from(params.tensor(&bias)))
}

/// Adds the gradient of a layer's parameters where these lie, given what it saw and the gradient by its sums.
pub(crate) fn backward(
    params: &Params,
    name: &str,
    inputs: ArrayView2<'_, f32>,
    by_sums: ArrayView2<'_, f32>,
    into: &mut [f32],
) {
    let [weight, bias] = parts(name).map(|part| params.layout().tensor(&part).range.clone());
    add(&mut into[weight], flat(&product(inputs.reversed_axes(), by_sums)));
    add(&mut into[bias], flat(&by_sums.sum_axis(Axis(0))));
}

fn parts(name: &str) -> [String; 2] {
    ["weight", "bias"].map(|part| format!("{name}.{part}"))
}
