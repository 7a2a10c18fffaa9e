//! Many decisions in one go, for training: every row has exactly the bits that it has by itself.
//!
//! Rows are worked out one after the other. Reading weights once for several rows was tried and is no
//! faster: with the registers of any x86-64, arithmetic takes the time and not memory.

use dynamiccl_spec::features::{CONTEXT_WIDTH, JOB_WIDTH};
use dynamiccl_spec::{Head, Mask};

use super::forward::Scratch;
use super::heads::{Acted, Estimates};
use super::job_sum::JobSum;
use super::memory::Memory;
use super::net::Network;

/// Room to decide rows in.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    scratch: Scratch,
    job: JobSum,
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
    /// Room for any number of rows.
    pub fn new(network: &Network) -> Self {
        Batch { scratch: network.scratch(), job: network.job_sum() }
    }

    /// Decides all rows; `choose` is told the row as well, and is else as in [`Network::act`].
    ///
    /// # Panics
    /// Where there are not as many of everything.
    pub fn act(
        &mut self,
        network: &Network,
        rows: Rows<'_>,
        mut choose: impl FnMut(usize, Head, &[f32]) -> usize,
        into: &mut Answers<'_>,
    ) {
        let (contexts, rest) = rows.contexts.as_chunks::<CONTEXT_WIDTH>();
        assert_eq!((rest.len(), into.embeddings.len() % network.shape.embedding), (0, 0), "whole rows");
        let embeddings = into.embeddings.chunks_exact_mut(network.shape.embedding);
        let counts = [rows.masks.len(), rows.memories.len(), into.acted.len(), into.estimates.len()];
        assert_eq!((counts, embeddings.len()), ([contexts.len(); 4], contexts.len()));
        let Batch { scratch, job } = self;
        for (row, (context, embedding)) in contexts.iter().zip(embeddings).enumerate() {
            let (of_job, of_call) = context.split_at(JOB_WIDTH);
            network.sum_job(of_job.as_array().expect("the job's part"), job);
            let call = of_call.as_array().expect("the call's part");
            let choose = |head, logits: &[f32]| choose(row, head, logits);
            let (memory, mask) = (&rows.memories[row], &rows.masks[row]);
            into.acted[row] = network.act(job, call, memory, mask, scratch, choose);
            into.estimates[row] = scratch.estimates();
            embedding.copy_from_slice(scratch.embedding());
        }
    }

    /// One step of the LSTM for some of the memories, by their numbers; `calls` holds what is remembered of a
    /// call for each of them. Decisions see it once [`Network::hold`] has followed.
    ///
    /// # Panics
    /// Where there are not as many calls as memories.
    pub fn step(&mut self, network: &Network, which: &[usize], calls: &[f32], memories: &mut [Memory]) {
        assert_eq!(calls.len(), which.len() * network.remembered());
        for (call, &at) in calls.chunks_exact(network.remembered()).zip(which) {
            network.step(call, &mut memories[at], &mut self.scratch);
        }
    }
}
