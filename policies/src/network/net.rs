//! The weights of a network, packed for the order in which they are used.

use dynamiccl_spec::features::CONTEXT_WIDTH;
use dynamiccl_spec::ids::PAIRS;

use super::layout::Slots;
use super::linear::{Linear, Output};
use super::memory::Memory;
use super::shape::{EXPERTS, Shape};
use super::weights::Weights;

/// A network that can decide. Making one allocates; nothing that it does afterwards does.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    pub(super) shape: Shape,
    pub(super) slots: Slots,
    pub(super) embed: Linear,
    pub(super) lstm: Linear,
    pub(super) experts: [Linear; EXPERTS],
    pub(super) address: Linear,
    /// Path, pair, means of the estimates, and resources, side by side.
    pub(super) first_heads: Linear,
    /// ln of the spreads of the estimates, which no decision depends on.
    pub(super) spreads: Linear,
    /// Channels, chunk, threads and gain, side by side.
    pub(super) last_heads: Linear,
    pub(super) anchor: f32,
    pub(super) added: Added,
    /// What a job begins with.
    pub(super) initial: Memory,
    /// What one begins with that remembers nothing.
    pub(super) trained: Memory,
}

/// What earlier choices add to the sums of later ones: a row for each value of the earlier head.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Added {
    pub path_to_resource: Vec<f32>,
    pub pair_to_resource: Vec<f32>,
    pub channels_to_chunk: Vec<f32>,
    pub channels_to_gain: Vec<f32>,
    pub chunk_to_gain: Vec<f32>,
    pub threads_to_gain: Vec<f32>,
}

impl Network {
    /// The network of these weights, which must all be finite.
    pub fn new(weights: &Weights) -> Self {
        let shape = weights.shape();
        let tensor = |name| weights.get(name).expect("a tensor of every shape");
        let part = |weight, bias, columns| Output { weight: tensor(weight), bias: tensor(bias), columns };
        let output = |weight, bias| part(weight, bias, 0..tensor(bias).len());
        let estimate = |columns| part("estimate.weight", "estimate.bias", columns);
        let expert = |role: usize| {
            let [weight, bias] = ["expert.weight", "expert.bias"]
                .map(|name| tensor(name).chunks_exact(tensor(name).len() / EXPERTS).nth(role));
            let [weight, bias] = [weight, bias].map(|part| part.expect("a part for every role"));
            Linear::new(shape.embedding, &[Output { weight, bias, columns: 0..bias.len() }])
        };
        Network {
            shape,
            slots: Slots::new(),
            embed: Linear::new(CONTEXT_WIDTH, &[output("embed.weight", "embed.bias")]),
            lstm: Linear::new(shape.lstm_inputs(), &[output("lstm.weight", "lstm.bias")]),
            experts: std::array::from_fn(expert),
            address: Linear::new(shape.embedding, &[output("address.weight", "address.bias")]),
            first_heads: Linear::new(
                shape.thought(),
                &[
                    output("path.weight", "path.bias"),
                    output("pair.weight", "pair.bias"),
                    estimate(0..PAIRS),
                    output("resource.weight", "resource.bias"),
                ],
            ),
            spreads: Linear::new(shape.thought(), &[estimate(PAIRS..2 * PAIRS)]),
            last_heads: Linear::new(
                shape.resource,
                &[
                    output("channels.weight", "channels.bias"),
                    output("chunk.weight", "chunk.bias"),
                    output("threads.weight", "threads.bias"),
                    output("gain.weight", "gain.bias"),
                ],
            ),
            anchor: tensor("pair.anchor")[0],
            added: Added {
                path_to_resource: tensor("resource.path").to_vec(),
                pair_to_resource: tensor("resource.pair").to_vec(),
                channels_to_chunk: tensor("chunk.channels").to_vec(),
                channels_to_gain: tensor("gain.channels").to_vec(),
                chunk_to_gain: tensor("gain.chunk").to_vec(),
                threads_to_gain: tensor("gain.threads").to_vec(),
            },
            initial: Memory::new([tensor("memory.hidden"), tensor("memory.cell")]),
            trained: Memory::new(weights.trained()),
        }
    }

    /// Its widths.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}
