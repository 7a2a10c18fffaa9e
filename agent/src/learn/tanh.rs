//! tanh and its slope. On the CPU it is that of the plain network, which works on many numbers at once; burn's
//! own asks a C library for each number, which takes longer than all products above the LSTM.

use burn::tensor::Tensor;

use super::leaves::{matrix, numbers};
use crate::matrices::tanh;

/// Who works out tanh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tanh {
    /// The device.
    Device,
    /// We, in the memory of the CPU.
    Host,
}

impl Tanh {
    pub fn of(self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Tanh::Device => x.tanh(),
            Tanh::Host => host(x),
        }
    }
}

/// y + (x − x as a constant) × slope: its value is y, since the bracket is 0, and its gradient the slope.
fn host(x: Tensor<2>) -> Tensor<2> {
    let (dims, device, constant) = (x.dims(), x.device(), x.clone().detach());
    let mut y = numbers(constant.clone());
    tanh(&mut y);
    let slope = y.iter().map(|y| 1.0 - y * y).collect();
    (x - constant) * matrix(slope, dims, &device) + matrix(y, dims, &device)
}
