//! The expected worth of a policy over all choices at once, where the simulator knows what each is worth.
//!
//! Only pairs that may be chosen are gone through: a list of (call, pair), with all channels and chunks
//! of each.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use dynamiccl_policies::network::activation::exp;
use dynamiccl_spec::Head;
use dynamiccl_spec::ids::PAIRS;

use super::chosen::{Chosen, forbid};
use super::heads::Said;
use super::leaves::{Leaves, matrix};
use crate::rollout::Rollout;

const CHANNELS: usize = Head::Channels.size();
const CHUNKS: usize = Head::Chunk.size();
/// The least that a choice is worth.
const WORST: f32 = -10.0;
/// What NCCL's own choice is worth. Measured from there numbers stay small, and no gradient changes.
const OWN: f32 = -1.0;

/// Pairs that could have been chosen, with what every choice after them would have been worth.
#[derive(Debug)]
pub(super) struct Worth {
    calls: usize,
    /// Which call, by pair.
    rows: Tensor<1, Int>,
    /// Which pair.
    pairs: Tensor<1, Int>,
    /// Both in one: call × pairs + pair.
    places: Tensor<1, Int>,
    channels: Tensor<2>,
    chunks: Tensor<3>,
    worth: Tensor<3>,
    /// How much each pair counts where all of a call count alike.
    even: Tensor<1>,
}

impl Worth {
    /// What is known about the chosen calls; none where nothing is.
    pub fn new(rollout: &Rollout, chosen: &Chosen, device: &Device) -> Option<Self> {
        let mut place = vec![None; rollout.rows()];
        chosen.calls.iter().enumerate().for_each(|(at, call)| place[call.row] = Some(at));
        let (mut calls, mut rows, mut pairs, mut even) = (0, Vec::new(), Vec::new(), Vec::new());
        let (mut channels, mut chunks, mut worth) = (Vec::new(), Vec::new(), Vec::new());
        for truth in &rollout.truths {
            let Some(at) = place[truth.row] else { continue };
            let mask = rollout.masks[truth.row];
            calls += 1;
            let legal = mask[Head::Pair as usize].count_ones() as f32;
            for pair in (0..PAIRS).filter(|pair| mask[Head::Pair as usize] >> pair & 1 == 1) {
                rows.push(at as i32);
                pairs.push(pair as i32);
                even.push(1.0 / legal);
                forbid(mask[Head::Channels as usize], CHANNELS, &mut channels);
                forbid(mask[Head::Chunk as usize], CHUNKS, &mut chunks);
                let gains = &truth.gains[pair * CHANNELS * CHUNKS..][..CHANNELS * CHUNKS];
                worth.extend(gains.iter().map(|&gain| worth_of(gain) - OWN));
            }
        }
        let count = rows.len();
        let places = rows.iter().zip(&pairs).map(|(row, pair)| row * PAIRS as i32 + pair).collect();
        let indices = |of: Vec<i32>| Tensor::from_data(TensorData::new(of, [count]), device);
        (count > 0).then(|| Worth {
            calls,
            rows: indices(rows),
            pairs: indices(pairs),
            places: indices(places),
            channels: matrix(channels, [count, CHANNELS], device),
            chunks: matrix(chunks, [count, CHUNKS], device).reshape([count, 1, CHUNKS]),
            even: Tensor::from_data(TensorData::new(even, [count]), device),
            worth: matrix(worth, [count, CHANNELS * CHUNKS], device).reshape([count, CHANNELS, CHUNKS]),
        })
    }

    /// −Σ probability × worth over all choices, and the same where every legal pair is as likely; both summed over
    /// calls.
    pub fn losses(&self, leaves: &Leaves, said: &Said) -> [Tensor<1>; 2] {
        let count = self.worth.dims()[0];
        let of_pairs = leaves.get("resource.pair").select(0, self.pairs.clone());
        let u = leaves.tanh(said.resource.clone().select(0, self.rows.clone()) + of_pairs);
        let channels = activation::softmax(leaves.layer("channels", u.clone()) + self.channels.clone(), 1);
        let of_channels = leaves.get("chunk.channels").reshape([1, CHANNELS, CHUNKS]);
        let chunks = leaves.layer("chunk", u).reshape([count, 1, CHUNKS]) + self.chunks.clone();
        let chunks = activation::softmax(chunks + of_channels, 2);
        let of_chunks = (chunks * self.worth.clone()).sum_dim(2).reshape([count, CHANNELS]);
        let of_pairs = (channels * of_chunks).sum_dim(1).reshape([count]);
        let pairs = said.ln_probabilities[Head::Pair as usize].clone();
        let rows = pairs.dims()[0];
        let pairs = pairs.reshape([rows * PAIRS]).select(0, self.places.clone()).exp();
        let loss = |likely: Tensor<1>| (likely * of_pairs.clone()).sum().neg() - OWN * self.calls as f32;
        [loss(pairs), loss(self.even.clone())]
    }
}

/// What a choice with this gain is worth: −its time ÷ the time of NCCL's own choice.
fn worth_of(gain: f32) -> f32 {
    if gain.is_nan() { WORST } else { (-exp(-gain)).max(WORST) }
}
