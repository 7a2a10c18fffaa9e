//! The calls since memory was refreshed last, as the LSTM will see them.
//!
//! What was measured of a call is known when the next one comes, so a call waits here for its second half.

use dynamiccl_spec::features::{Encoder, HISTORY_WIDTH, PastCall};

use crate::network::{Estimates, Surprise};

/// Calls that memory has not taken in yet. Room for all of them is taken at the beginning.
#[derive(Debug, Clone)]
pub(super) struct History {
    rows: Vec<f32>,
    embedding: usize,
    /// Calls that are here, the last perhaps by half.
    calls: usize,
    /// What the times of the last call were expected to be, where it is here by half.
    waiting: Option<Estimates>,
    surprise: Surprise,
    /// Whether anything was measured since the job began.
    told: bool,
}

impl History {
    /// Room for this many calls whose contexts are embedded in so many numbers.
    pub fn new(calls: usize, embedding: usize) -> Self {
        let rows = vec![0.0; calls * (embedding + HISTORY_WIDTH)];
        History { rows, embedding, calls: 0, waiting: None, surprise: Surprise::default(), told: false }
    }

    /// Adds the embedding of a call, and what its times are expected to be.
    pub fn call(&mut self, embedding: &[f32], expected: Estimates) {
        let width = self.embedding + HISTORY_WIDTH;
        self.rows[self.calls * width..][..self.embedding].copy_from_slice(embedding);
        (self.calls, self.waiting) = (self.calls + 1, Some(expected));
    }

    /// Adds what became of the last call, and says whether there is no room for another.
    pub fn became(&mut self, past: &PastCall) -> bool {
        let width = self.embedding + HISTORY_WIDTH;
        self.told |= past.feedback.is_some();
        if let Some(expected) = self.waiting.take() {
            let row = self.rows[..self.calls * width].last_chunk_mut().expect("a call waits");
            Encoder::history(past, row);
            self.surprise.put(&expected, row);
        }
        self.calls * width == self.rows.len()
    }

    /// Whether anything was measured since the job began.
    pub fn is_told(&self) -> bool {
        self.told
    }

    /// The calls, oldest first.
    pub fn rows(&self) -> &[f32] {
        &self.rows[..self.calls * (self.embedding + HISTORY_WIDTH)]
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        (self.calls, self.waiting) = (0, None);
    }

    /// Forgets the job.
    pub fn begin(&mut self) {
        self.clear();
        self.told = false;
    }
}
