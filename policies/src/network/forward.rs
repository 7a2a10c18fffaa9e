//! One decision at a time, without allocating.

use dynamiccl_spec::features::{CALL_WIDTH, JOB_WIDTH};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Head, Mask};

use super::activation::tanh_all;
use super::heads::{Acted, Estimates};
use super::job_sum::JobSum;
use super::memory::{AT_ONCE, Memory};
use super::net::Network;
use super::shape::BANDS;

/// Room for the numbers between the layers of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Scratch {
    embedding: Vec<f32>,
    /// How many of these the embedding is; the others fill a block.
    embedded: usize,
    expert: Vec<f32>,
    /// How much each band of the memory counts for the call.
    address: Vec<f32>,
    /// What it reads there.
    read: Vec<f32>,
    first: Vec<f32>,
    last: Vec<f32>,
    spreads: Vec<f32>,
    /// The gates of calls that are taken in together.
    pub(super) gates: Vec<f32>,
}

impl Network {
    /// Room to decide in.
    pub fn scratch(&self) -> Scratch {
        Scratch {
            embedding: vec![0.0; self.embed.width()],
            embedded: self.shape.embedding,
            expert: vec![0.0; self.experts[0].width()],
            address: vec![0.0; self.address.width()],
            read: vec![0.0; self.shape.read()],
            first: vec![0.0; self.first_heads.width()],
            last: vec![0.0; self.last_heads.width()],
            spreads: vec![0.0; self.spreads.width()],
            gates: vec![0.0; AT_ONCE * self.lstm.width()],
        }
    }

    /// Sums up a call in numbers: the embedding of its context. It stays in the scratch as well.
    #[inline(always)]
    pub fn embed<'a>(&self, job: &JobSum, call: &[f32; CALL_WIDTH], scratch: &'a mut Scratch) -> &'a [f32] {
        scratch.embedding.copy_from_slice(&job.sums);
        self.embed.add_sparse(JOB_WIDTH, call, &mut scratch.embedding);
        tanh_all(&mut scratch.embedding);
        scratch.embedding()
    }

    /// Decides a call: what its communicator's job adds, the call's part of its context, what is remembered,
    /// what may be chosen.
    ///
    /// `choose` is asked for each head in turn; it is given the logits, −∞ where the mask forbids and finite
    /// elsewhere, and says which one it takes: [`super::greedy`] when deployed.
    #[inline(always)]
    pub fn act(
        &self,
        job: &JobSum,
        call: &[f32; CALL_WIDTH],
        memory: &Memory,
        mask: &Mask,
        scratch: &mut Scratch,
        choose: impl FnMut(Head, &[f32]) -> usize,
    ) -> Acted {
        self.think(job, call, memory, scratch);
        let Scratch { first, last, .. } = scratch;
        self.choose(first, last, &call[self.slots.cost.clone()], mask, choose)
    }

    /// Works out all that does not depend on what may be chosen: [`Scratch::estimates`] are there afterwards.
    #[inline(always)]
    pub fn think(&self, job: &JobSum, call: &[f32; CALL_WIDTH], memory: &Memory, scratch: &mut Scratch) {
        self.embed(job, call, scratch);
        let Scratch { embedding, expert, address, read, first, .. } = scratch;
        let (of_role, embedding) = (&self.experts[job.role], &embedding[..self.shape.embedding]);
        of_role.begin(expert);
        of_role.add(0, embedding, expert);
        tanh_all(expert);
        self.address.begin(address);
        self.address.add(0, embedding, address);
        for (read, cells) in read.iter_mut().zip(memory.held.chunks(BANDS)) {
            *read = cells.iter().zip(&*address).fold(0.0, |sum, (cell, weight)| sum + cell * weight);
        }
        self.first_heads.begin(first);
        self.first_heads.add(0, &expert[..self.shape.expert], first);
        self.first_heads.add(self.shape.expert, read, first);
    }

    /// What the times of a call are expected to be where nothing is remembered yet.
    #[inline(always)]
    pub fn expect(&self, job: &JobSum, call: &[f32; CALL_WIDTH], scratch: &mut Scratch) -> Estimates {
        self.think(job, call, &self.trained, scratch);
        scratch.estimates()
    }

    /// How far from [`Scratch::estimates`] the times of the call that was decided last may be: ln of the
    /// spreads, pair by pair.
    #[inline(always)]
    pub fn ln_spreads<'a>(&self, scratch: &'a mut Scratch) -> &'a [f32] {
        self.spreads.begin(&mut scratch.spreads);
        self.spreads.add(0, &scratch.expert[..self.shape.expert], &mut scratch.spreads);
        self.spreads.add(self.shape.expert, &scratch.read, &mut scratch.spreads);
        &scratch.spreads[..PAIRS]
    }
}

impl Scratch {
    /// The embedding of the call that was decided last.
    #[inline]
    pub fn embedding(&self) -> &[f32] {
        &self.embedding[..self.embedded]
    }

    /// What the network believes about the times of the call that was decided last.
    #[inline]
    pub fn estimates(&self) -> Estimates {
        Estimates::of(&self.first)
    }
}
