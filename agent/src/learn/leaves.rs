//! Parameters as tensors of a device, and their gradients back in one row.

use std::ops::Range;

use burn::tensor::{Device, Gradients, Tensor, TensorData};
use dynamiccl_policies::network::EXPERTS;

use super::tanh::Tanh;
use crate::params::Params;

/// Tensors of which burn works out gradients. All have two dimensions: one row for what is a row.
#[derive(Debug)]
pub(super) struct Leaves {
    tanh: Tanh,
    tensors: Vec<Leaf>,
    experts: Vec<[Leaf; 2]>,
}

#[derive(Debug)]
struct Leaf {
    name: &'static str,
    range: Range<usize>,
    tensor: Tensor<2>,
}

impl Leaves {
    /// The parameters whose names are `wanted`, on a device.
    pub fn new(params: &Params, device: &Device, tanh: Tanh, wanted: impl Fn(&str) -> bool) -> Self {
        let leaf = |name, range: Range<usize>, dims: [usize; 2]| {
            let tensor = matrix(params.values()[range.clone()].to_vec(), dims, device);
            let tensor = if device.is_autodiff() { tensor.require_grad() } else { tensor };
            Leaf { name, range, tensor }
        };
        let layout = params.layout();
        let plain = layout.tensors().iter().filter(|of| wanted(of.name) && !of.name.starts_with("expert."));
        let tensors = plain.map(|of| match of.dims[..] {
            [rows, columns] => leaf(of.name, of.range.clone(), [rows, columns]),
            _ => leaf(of.name, of.range.clone(), [1, of.range.len()]),
        });
        let expert = |role: usize, name| {
            let of = layout.tensor(name);
            let (length, columns) = (of.range.len() / EXPERTS, *of.dims.last().expect("some dimension"));
            let begin = of.range.start + role * length;
            leaf(of.name, begin..begin + length, [length / columns, columns])
        };
        let experts = (0..EXPERTS).filter(|_| wanted("expert.weight"));
        let experts = experts.map(|role| ["expert.weight", "expert.bias"].map(|name| expert(role, name)));
        Leaves { tanh, tensors: tensors.collect(), experts: experts.collect() }
    }

    /// A tensor by name.
    pub fn get(&self, name: &str) -> Tensor<2> {
        let found = self.tensors.iter().find(|leaf| leaf.name == name);
        found.unwrap_or_else(|| panic!("{name} was not asked for")).tensor.clone()
    }

    /// A layer: inputs × weight + bias.
    pub fn layer(&self, name: &str, inputs: Tensor<2>) -> Tensor<2> {
        let [weight, bias] = ["weight", "bias"].map(|part| self.get(&format!("{name}.{part}")));
        inputs.matmul(weight) + bias
    }

    /// tanh of a layer.
    pub fn tanh_layer(&self, name: &str, inputs: Tensor<2>) -> Tensor<2> {
        self.tanh(self.layer(name, inputs))
    }

    /// What one role's expert says: tanh of its layer.
    pub fn expert(&self, role: usize, inputs: Tensor<2>) -> Tensor<2> {
        let [weight, bias] = self.experts[role].each_ref().map(|leaf| leaf.tensor.clone());
        self.tanh(inputs.matmul(weight) + bias)
    }

    /// tanh of every number.
    pub fn tanh(&self, x: Tensor<2>) -> Tensor<2> {
        self.tanh.of(x)
    }

    /// Puts the gradients where their parameters lie.
    pub fn collect(&self, gradients: &mut Gradients, into: &mut [f32]) {
        for leaf in self.tensors.iter().chain(self.experts.iter().flatten()) {
            if let Some(gradient) = leaf.tensor.grad_remove(gradients) {
                into[leaf.range.clone()].copy_from_slice(&numbers(gradient));
            }
        }
    }
}

/// Numbers as a tensor.
pub(super) fn matrix(numbers: Vec<f32>, dims: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(numbers, dims), device)
}

/// A tensor as numbers.
pub(super) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec::<f32>().expect("32-bit floats")
}
