//! The sizes of a network and the names of its weights: what a file must hold to be one.
//!
//! Training writes these, the reader checks them, inference multiplies by them. Weights lie input by
//! input (a row per input, a column per output), so that a sum over inputs can run over all outputs
//! at once and always in the same order.

use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Head, Role};

/// Role experts.
pub const EXPERTS: usize = Role::ALL.len();

/// Cells of the LSTM that a call reads as one, weighed by its address.
pub const BANDS: usize = 11;

/// The widths that a network is free to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Numbers that a context is summed up in.
    pub embedding: usize,
    /// Cells of the LSTM.
    pub memory: usize,
    /// Numbers that a role's expert makes of the embedding.
    pub expert: usize,
    /// Numbers that are left once the pair is chosen, from which its resources are.
    pub resource: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Shape { embedding: 96, memory: 200, expert: 96, resource: 64 }
    }
}

impl Shape {
    /// The widest that a width may be.
    pub const WIDEST: usize = 1024;
    /// What every width must be a multiple of.
    pub const GRAIN: usize = 8;

    /// Inputs of the LSTM: the embedded context of a call, what was chosen and measured, the memory before.
    pub const fn lstm_inputs(&self) -> usize {
        self.embedding + HISTORY_WIDTH + self.memory
    }

    /// Numbers that a call reads from the memory.
    pub const fn read(&self) -> usize {
        self.memory.div_ceil(BANDS)
    }

    /// What the first heads see: what the expert says, then what was read.
    pub const fn thought(&self) -> usize {
        self.expert + self.read()
    }

    /// The name and dimensions of every tensor, in the order of the file.
    pub fn tensors(&self) -> [(&'static str, Vec<usize>); TENSORS] {
        let Shape { embedding, memory, expert, resource } = *self;
        let (size, thought) = (Head::size, self.thought());
        [
            ("embed.weight", vec![CONTEXT_WIDTH, embedding]),
            ("embed.bias", vec![embedding]),
            // Gates in the order input, forget, candidate, output.
            ("lstm.weight", vec![self.lstm_inputs(), 4 * memory]),
            ("lstm.bias", vec![4 * memory]),
            ("expert.weight", vec![EXPERTS, embedding, expert]),
            ("expert.bias", vec![EXPERTS, expert]),
            // Where in the memory a call looks.
            ("address.weight", vec![embedding, BANDS]),
            ("address.bias", vec![BANDS]),
            ("path.weight", vec![thought, size(Head::Path)]),
            ("path.bias", vec![size(Head::Path)]),
            ("pair.weight", vec![thought, PAIRS]),
            ("pair.bias", vec![PAIRS]),
            // How much NCCL's own prediction counts: the logit of a pair loses this × ln(its predicted time).
            ("pair.anchor", vec![1]),
            ("resource.weight", vec![thought, resource]),
            ("resource.bias", vec![resource]),
            ("resource.path", vec![size(Head::Path), resource]),
            ("resource.pair", vec![PAIRS, resource]),
            ("channels.weight", vec![resource, size(Head::Channels)]),
            ("channels.bias", vec![size(Head::Channels)]),
            ("chunk.weight", vec![resource, size(Head::Chunk)]),
            ("chunk.bias", vec![size(Head::Chunk)]),
            ("chunk.channels", vec![size(Head::Channels), size(Head::Chunk)]),
            ("threads.weight", vec![resource, size(Head::Threads)]),
            ("threads.bias", vec![size(Head::Threads)]),
            // Mean of ln(time / NCCL's prediction) for each pair, then ln of its spread for each.
            ("estimate.weight", vec![thought, 2 * PAIRS]),
            ("estimate.bias", vec![2 * PAIRS]),
            // Mean of ln(NCCL's own time / time) for the knobs chosen, then ln of its spread.
            ("gain.weight", vec![resource, 2]),
            ("gain.bias", vec![2]),
            ("gain.channels", vec![size(Head::Channels), 2]),
            ("gain.chunk", vec![size(Head::Chunk), 2]),
            ("gain.threads", vec![size(Head::Threads), 2]),
            // What the network remembers when a job begins.
            ("memory.hidden", vec![memory]),
            ("memory.cell", vec![memory]),
        ]
    }
}

/// Number of tensors.
pub const TENSORS: usize = 33;
