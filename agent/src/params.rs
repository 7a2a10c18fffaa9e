//! Every number that training moves, in one row: the policy's tensors in the order of their file, then
//! the critic's, which stay behind.
//!
//! One row makes the optimiser, the norm of a gradient and a checkpoint one loop each. Names and
//! dimensions say where a tensor lies.

use std::ops::Range;
use std::sync::Arc;

use dynamiccl_policies::network::{Shape, Weights};
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};
use ndarray::ArrayView2;

use crate::config::NetworkConfig;
use crate::normal::Normaliser;

/// Where each tensor lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Widths of the policy.
    pub shape: Shape,
    /// Width of the critic's layers.
    pub critic: usize,
    /// Numbers that only the critic sees.
    pub privileged: usize,
    tensors: Vec<Tensor>,
}

/// One tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: &'static str,
    /// Its dimensions.
    pub dims: Vec<usize>,
    /// Where it lies.
    pub range: Range<usize>,
}

/// Numbers that training moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    layout: Arc<Layout>,
    values: Vec<f32>,
}

impl Layout {
    /// The layout of a network whose critic sees this many numbers more.
    pub fn new(network: &NetworkConfig, privileged: usize) -> Self {
        let (shape, critic) = (network.shape(), network.critic);
        let inputs = CONTEXT_WIDTH + privileged + shape.memory;
        let of_critic = [
            ("critic.first.weight", vec![inputs, critic]),
            ("critic.first.bias", vec![critic]),
            ("critic.second.weight", vec![critic, critic]),
            ("critic.second.bias", vec![critic]),
            ("critic.value.weight", vec![critic, 1]),
            ("critic.value.bias", vec![1]),
        ];
        let mut end = 0;
        let place = |(name, dims): (&'static str, Vec<usize>)| {
            let begin = end;
            end += dims.iter().product::<usize>();
            Tensor { name, dims, range: begin..end }
        };
        let tensors = shape.tensors().into_iter().chain(of_critic).map(place).collect();
        Layout { shape, critic, privileged, tensors }
    }

    /// Every tensor, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// A tensor by name.
    ///
    /// # Panics
    /// Where there is none.
    pub fn tensor(&self, name: &str) -> &Tensor {
        let found = self.tensors.iter().find(|tensor| tensor.name == name);
        found.unwrap_or_else(|| panic!("no tensor is called {name}"))
    }

    /// Numbers in all.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Params {
    /// Zeros.
    pub fn new(layout: Arc<Layout>) -> Self {
        let values = vec![0.0; layout.len()];
        Params { layout, values }
    }

    /// These numbers, if they are as many as the layout has.
    pub fn from_values(layout: Arc<Layout>, values: Vec<f32>) -> Option<Self> {
        (values.len() == layout.len()).then_some(Params { layout, values })
    }

    /// Where each tensor lies.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// All numbers.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All numbers, to be moved.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The numbers of a tensor, to be moved.
    pub fn tensor_mut(&mut self, name: &str) -> &mut [f32] {
        &mut self.values[self.layout.tensor(name).range.clone()]
    }

    /// The numbers of a tensor.
    pub fn tensor(&self, name: &str) -> &[f32] {
        &self.values[self.layout.tensor(name).range.clone()]
    }

    /// A tensor of two dimensions.
    ///
    /// # Panics
    /// Where it has others.
    pub fn matrix(&self, name: &str) -> ArrayView2<'_, f32> {
        let tensor = self.layout.tensor(name);
        let dims: [usize; 2] = tensor.dims[..].try_into().expect("rows and columns");
        ArrayView2::from_shape(dims, &self.values[tensor.range.clone()]).expect("the layout's own dimensions")
    }

    /// The weights of the policy for rows as environments show them: what the normalisers of contexts and
    /// history rows do is folded into the weights that read them.
    pub fn folded(&self, context: &Normaliser, history: &Normaliser) -> Weights {
        let tensors = self.layout.tensors.iter().take(self.layout.shape.tensors().len());
        let tensors = tensors.map(|tensor| self.values[tensor.range.clone()].to_vec()).collect();
        let mut weights =
            Weights::from_tensors(self.layout.shape, tensors).expect("the layout's own tensors");
        let Shape { embedding, memory, .. } = self.layout.shape;
        fold(&mut weights, ["embed.weight", "embed.bias"], 0..CONTEXT_WIDTH, embedding, context);
        let rows = embedding..embedding + HISTORY_WIDTH;
        fold(&mut weights, ["lstm.weight", "lstm.bias"], rows, 4 * memory, history);
        weights
    }
}

/// Folds the scaling of inputs into the rows of a weight that they are multiplied with, and into the bias.
fn fold(weights: &mut Weights, names: [&str; 2], rows: Range<usize>, columns: usize, by: &Normaliser) {
    let mut bias = weights.get(names[1]).expect("a bias").to_vec();
    let weight = weights.get_mut(names[0]).expect("a weight");
    for (row, (mean, scale)) in rows.zip(by.scaling()) {
        let row = &mut weight[row * columns..][..columns];
        for (x, bias) in row.iter_mut().zip(&mut bias) {
            *x *= scale;
            *bias -= mean * *x;
        }
    }
    weights.get_mut(names[1]).expect("a bias").copy_from_slice(&bias);
}
