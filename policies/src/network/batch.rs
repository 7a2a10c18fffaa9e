//! Many decisions at once, for training: every row has exactly the bits that it has by itself.
//!
//! Weights are read once for several rows, which is what makes it faster; the order in which a row is
//! added up stays the same.

use dynamiccl_spec::features::{CALL_WIDTH, CONTEXT_WIDTH, JOB_WIDTH};
use dynamiccl_spec::{Head, Mask};

use super::activation::tanh_all;
use super::heads::{Acted, Estimates};
use super::memory::{Memory, open_gates};
use super::net::Network;

/// Room for the numbers between the layers, for some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    embedding: Vec<f32>,
    expert: Vec<f32>,
    first: Vec<f32>,
    last: Vec<f32>,
    gates: Vec<f32>,
    hidden: Vec<f32>,
}

/// Calls to decide; as many of each.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Contexts, one after the other.
    pub contexts: &'a [f32],
    /// What may be chosen.
    pub masks: &'a [Mask],
    /// What is remembered.
    pub memories: &'a [Memory],
}

/// Where the answers go; as many of each as there are rows.
#[derive(Debug)]
pub struct Answers<'a> {
    /// What was chosen.
    pub acted: &'a mut [Acted],
    /// What each pair is believed to take.
    pub estimates: &'a mut [Estimates],
    /// Embeddings of the contexts, one after the other: what [`Network::refresh`] wants to know of a call.
    pub embeddings: &'a mut [f32],
}

impl Batch {
    /// Room for this many rows.
    pub fn new(network: &Network, rows: usize) -> Self {
        let room = |width| vec![0.0; rows * width];
        Batch {
            embedding: room(network.embed.width()),
            expert: room(network.experts[0].width()),
            first: room(network.first_heads.width()),
            last: vec![0.0; network.last_heads.width()],
            gates: room(network.lstm.width()),
            hidden: room(network.shape.memory),
        }
    }

    /// Decides all rows; `choose` is told the row as well, and is else as in [`Network::act`].
    ///
    /// # Panics
    /// Where there are more rows than there is room for, or not as many of everything.
    pub fn act(
        &mut self,
        network: &Network,
        rows: Rows<'_>,
        mut choose: impl FnMut(usize, Head, &[f32]) -> usize,
        into: &mut Answers<'_>,
    ) {
        let count = rows.masks.len();
        let (contexts, _) = rows.contexts.as_chunks::<CONTEXT_WIDTH>();
        assert!([contexts.len(), rows.memories.len(), into.acted.len(), into.estimates.len()] == [count; 4]);
        self.embed(network, contexts, into.embeddings);
        self.experts(network, contexts, rows.memories);
        let (inputs, width) = (network.shape.expert, network.first_heads.width());
        let first = &mut self.first[..count * width];
        first.chunks_exact_mut(width).for_each(|sums| network.first_heads.begin(sums));
        network.first_heads.add_rows(0, inputs, &self.expert[..count * network.experts[0].width()], first);
        let sums = first.chunks_exact_mut(width).zip(contexts).zip(rows.masks);
        for (row, ((sums, context), mask)) in sums.enumerate() {
            let cost = &context[JOB_WIDTH..][..CALL_WIDTH][network.slots.cost.clone()];
            let choose = |head, logits: &[f32]| choose(row, head, logits);
            into.acted[row] = network.choose(sums, &mut self.last, cost, mask, choose);
            into.estimates[row] = Estimates::of(sums);
        }
    }

    fn embed(&mut self, network: &Network, contexts: &[[f32; CONTEXT_WIDTH]], into: &mut [f32]) {
        let rows = self.embedding.chunks_exact_mut(network.embed.width());
        let into = into.chunks_exact_mut(network.shape.embedding);
        assert!(rows.len() >= contexts.len() && into.len() == contexts.len());
        for ((context, sums), into) in contexts.iter().zip(rows).zip(into) {
            network.embed.begin(sums);
            network.embed.add_sparse(0, context, sums);
            tanh_all(sums);
            into.copy_from_slice(&sums[..network.shape.embedding]);
        }
    }

    fn experts(&mut self, network: &Network, contexts: &[[f32; CONTEXT_WIDTH]], memories: &[Memory]) {
        let width = network.experts[0].width();
        let embeddings = self.embedding.chunks_exact(network.embed.width());
        let rows = self.expert.chunks_exact_mut(width).zip(embeddings);
        for (((sums, embedding), context), memory) in rows.zip(contexts).zip(memories) {
            let role = network.role(&context[..JOB_WIDTH]);
            sums.copy_from_slice(&memory.sums[role * width..][..width]);
            let embedding = &embedding[..network.shape.embedding];
            network.experts[role].add(network.shape.memory, embedding, sums);
            tanh_all(sums);
        }
    }

    /// One step of the LSTM for some of the memories, by their numbers; `calls` holds what is remembered of a
    /// call for each of them. Decisions see it once [`Network::hold`] has followed.
    ///
    /// # Panics
    /// Where there are more than there is room for, or not as many calls as memories.
    pub fn step(&mut self, network: &Network, which: &[usize], calls: &[f32], memories: &mut [Memory]) {
        let (width, cells, remembered) = (network.lstm.width(), network.shape.memory, network.remembered());
        assert_eq!(calls.len(), which.len() * remembered);
        let hidden = &mut self.hidden[..which.len() * cells];
        for (into, &at) in hidden.chunks_exact_mut(cells).zip(which) {
            into.copy_from_slice(&memories[at].hidden);
        }
        let gates = &mut self.gates[..which.len() * width];
        gates.chunks_exact_mut(width).for_each(|sums| network.lstm.begin(sums));
        network.lstm.add_rows(0, remembered, calls, gates);
        network.lstm.add_rows(remembered, cells, hidden, gates);
        for (gates, &at) in gates.chunks_exact(width).zip(which) {
            open_gates(gates, &mut memories[at]);
        }
    }
}
