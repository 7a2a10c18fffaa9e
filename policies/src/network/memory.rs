//! What a network remembers of past calls.
//!
//! A memory is held between refreshes: a decision reads it and never changes it, so that ranks which
//! hold the same memory decide the same.

use dynamiccl_spec::features::HISTORY_WIDTH;

use super::activation::{sigmoid, tanh};
use super::forward::Scratch;
use super::net::Network;

/// Calls that are taken in together, so that the weights of what they were are fetched once for all.
pub(super) const AT_ONCE: usize = 8;

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

    /// What the gates make of it.
    #[inline(always)]
    fn turn(&mut self, gates: &[f32]) {
        let cells = self.cell.len();
        let [input, forget, candidate, output] = [0, 1, 2, 3].map(|gate| &gates[gate * cells..][..cells]);
        for (at, (cell, hidden)) in self.cell.iter_mut().zip(&mut self.hidden).enumerate() {
            *cell = sigmoid(forget[at]) * *cell + sigmoid(input[at]) * tanh(candidate[at]);
            *hidden = sigmoid(output[at]) * tanh(*cell);
        }
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

    /// Takes in calls, in their order: [`Network::remembered`] numbers each. Decisions see them.
    #[inline(always)]
    pub fn refresh(&self, calls: &[f32], memory: &mut Memory, scratch: &mut Scratch) {
        self.steps(calls, memory, scratch);
        self.hold(memory);
    }

    /// Steps of the LSTM, one for each call. Decisions see them once [`Network::hold`] has followed.
    #[inline(always)]
    pub fn steps(&self, calls: &[f32], memory: &mut Memory, scratch: &mut Scratch) {
        let (inputs, embedding, gates) = (self.remembered(), self.shape.embedding, self.lstm.width());
        for calls in calls.chunks(AT_ONCE * inputs) {
            // Only what was remembered before is not known of all of them by now.
            let all = &mut scratch.gates[..calls.len() / inputs * gates];
            for gates in all.chunks_exact_mut(gates) {
                self.lstm.begin(gates);
            }
            self.lstm.add_rows(embedding, calls, inputs, all);
            for (call, gates) in calls.chunks_exact(inputs).zip(all.chunks_exact_mut(gates)) {
                let history: &[f32; HISTORY_WIDTH] =
                    call[embedding..].try_into().expect("a row of the history");
                self.lstm.add_sparse(embedding, history, gates);
                self.lstm.add(inputs, &memory.hidden, gates);
                memory.turn(gates);
            }
        }
    }

    /// Lets decisions see the state of the LSTM as it is now.
    pub fn hold(&self, memory: &mut Memory) {
        memory.held.copy_from_slice(&memory.hidden);
    }
}
