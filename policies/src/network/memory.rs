//! What a network remembers of past calls.
//!
//! A memory is held between refreshes: a decision reads it and never changes it, so that ranks which
//! hold the same memory decide the same.

use dynamiccl_spec::features::HISTORY_WIDTH;

use super::activation::{sigmoid, tanh};
use super::forward::Scratch;
use super::net::Network;

/// The state of the LSTM, and what decisions see of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    pub(super) hidden: Vec<f32>,
    pub(super) cell: Vec<f32>,
    /// What decisions see of h.
    pub(super) held: Vec<f32>,
}

impl Memory {
    /// The memory of this h and c, which decisions see.
    pub(super) fn new([hidden, cell]: [&[f32]; 2]) -> Self {
        Memory { hidden: hidden.to_vec(), cell: cell.to_vec(), held: hidden.to_vec() }
    }

    /// What the LSTM says: its h.
    pub fn hidden(&self) -> &[f32] {
        &self.hidden
    }

    /// What it keeps: its c.
    pub fn cell(&self) -> &[f32] {
        &self.cell
    }
}

impl Network {
    /// The memory with which a job begins.
    pub fn memory(&self) -> Memory {
        self.initial.clone()
    }

    /// A memory in which the LSTM has this state while decisions still see that of an earlier refresh.
    ///
    /// # Panics
    /// Where they are not as wide as the network's memory.
    pub fn recall(&self, hidden: &[f32], cell: &[f32], held: &[f32], memory: &mut Memory) {
        memory.held.copy_from_slice(held);
        memory.hidden.copy_from_slice(hidden);
        memory.cell.copy_from_slice(cell);
    }

    /// Forgets everything since the job began.
    pub fn forget(&self, memory: &mut Memory) {
        memory.hidden.copy_from_slice(&self.initial.hidden);
        memory.cell.copy_from_slice(&self.initial.cell);
        self.hold(memory);
    }

    /// Numbers in what is remembered of one call: its embedding, then the history row after it.
    pub fn remembered(&self) -> usize {
        self.shape.lstm_inputs() - self.shape.memory
    }

    /// Takes in calls, in their order: [`Network::remembered`] numbers each.
    pub fn refresh(&self, calls: &[f32], memory: &mut Memory, scratch: &mut Scratch) {
        for call in calls.chunks_exact(self.remembered()) {
            self.step(call, memory, scratch);
        }
        self.hold(memory);
    }

    /// One step of the LSTM. Decisions see it once [`Network::hold`] has followed.
    #[inline(always)]
    pub fn step(&self, call: &[f32], memory: &mut Memory, scratch: &mut Scratch) {
        let gates = &mut scratch.gates;
        let (embedding, history) = call.split_at(self.shape.embedding);
        let history: &[f32; HISTORY_WIDTH] = history.try_into().expect("a row of the history");
        self.lstm.begin(gates);
        self.lstm.add(0, embedding, gates);
        self.lstm.add_sparse(embedding.len(), history, gates);
        self.lstm.add(call.len(), &memory.hidden, gates);
        let cells = memory.cell.len();
        let [input, forget, candidate, output] = [0, 1, 2, 3].map(|gate| &gates[gate * cells..][..cells]);
        for (at, (cell, hidden)) in memory.cell.iter_mut().zip(&mut memory.hidden).enumerate() {
            *cell = sigmoid(forget[at]) * *cell + sigmoid(input[at]) * tanh(candidate[at]);
            *hidden = sigmoid(output[at]) * tanh(*cell);
        }
    }

    /// Lets decisions see the state of the LSTM as it is now.
    pub fn hold(&self, memory: &mut Memory) {
        memory.held.copy_from_slice(&memory.hidden);
    }
}
