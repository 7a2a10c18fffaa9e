//! What should have been chosen, where the simulator knows what every choice would have taken.
//!
//! The better a choice would have been, the more likely it should have been. A pair is judged by the best
//! resources that it could have had, whatever the network would have given it, and every pair is taught its
//! resources, whether or not it is likely: a pair is only good with the right channels, and they are only
//! learned where it is tried.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use dynamiccl_policies::network::activation::exp;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Head, Path};

use super::chosen::{Chosen, FARTHEST_GAIN, FARTHEST_TIME, forbid};
use super::heads::Said;
use super::leaves::{Leaves, matrix};
use super::losses::surprise;
use crate::config::LossConfig;
use crate::rollout::{Rollout, Truth};

const PATHS: usize = Head::Path.size();
const CHANNELS: usize = Head::Channels.size();
const CHUNKS: usize = Head::Chunk.size();

/// What should have been chosen. Each part is there where it is known of some call: where all took the schedule, paths
/// alone are learned.
#[derive(Debug)]
pub(super) struct Lesson {
    pairs: Option<Pairs>,
    /// Where in the paths of all calls NCCL's and the schedule's are, and how likely each should have been.
    paths: Option<(Tensor<1, Int>, Tensor<1>)>,
}

/// Pairs that could have been chosen, with how likely every choice should have been.
#[derive(Debug)]
struct Pairs {
    /// Which call, by pair.
    rows: Tensor<1, Int>,
    /// Which pair.
    pairs: Tensor<1, Int>,
    /// Both in one: call × pairs + pair.
    places: Tensor<1, Int>,
    channels: Tensor<2>,
    chunks: Tensor<3>,
    /// How likely each pair should have been.
    of_pairs: Tensor<1>,
    /// How likely each number of channels after it, weighed by how much the pair counts.
    of_channels: Tensor<2>,
    /// The same for chunks after these.
    of_chunks: Tensor<3>,
    /// What each would have won.
    gains: Tensor<3>,
    /// With which threads: those that the call had.
    threads: Tensor<1, Int>,
    /// How much each pair counts where its resources are learned.
    counts: Tensor<1>,
    /// 1 where nothing can be found out by trying, and the pair with the most to win is simply the best.
    settled: Tensor<1>,
    /// Where in the estimates of all calls the mean of each pair is.
    means: Tensor<1, Int>,
    /// ln(time ÷ NCCL's prediction) of each pair with its resources.
    times: Tensor<1>,
    /// What each counts: all pairs of a call together 1.
    timed: Tensor<1>,
}

/// The rows of a lesson as they are gathered.
#[derive(Default)]
struct Rows {
    rows: Vec<i32>,
    pairs: Vec<i32>,
    channels: Vec<f32>,
    chunks: Vec<f32>,
    of_pairs: Vec<f32>,
    of_channels: Vec<f32>,
    of_chunks: Vec<f32>,
    gains: Vec<f32>,
    threads: Vec<i32>,
    counts: Vec<f32>,
    settled: Vec<f32>,
    times: Vec<f32>,
    timed: Vec<f32>,
    paths: Vec<i32>,
    of_paths: Vec<f32>,
}

impl Lesson {
    /// What is known about the chosen calls; none where nothing is. A choice that is `temperature` (ln) slower
    /// than another should be a third as likely; a pair that was not tried yet may be slower by `curiosity`.
    pub fn new(rollout: &Rollout, chosen: &Chosen, by: &LossConfig, device: &Device) -> Option<Self> {
        let mut place = vec![None; rollout.rows()];
        chosen.calls.iter().enumerate().for_each(|(at, call)| place[call.row] = Some(at));
        let mut rows = Rows::default();
        for truth in &rollout.truths {
            let Some(at) = place[truth.row] else { continue };
            let (mask, runs) = (rollout.masks[truth.row], runs(rollout.masks[truth.row], truth));
            rows.add_path(at, &runs, truth, by.temperature);
            // What comes after a path is learned where that path was taken.
            let choice = rollout.choices[truth.row];
            if usize::from(choice[Head::Path as usize]) != Path::Synthesised.id() {
                rows.add(at, mask, &runs, truth, by);
                rows.threads.resize(rows.rows.len(), i32::from(choice[Head::Threads as usize]));
            }
        }
        let paths = rows.paths(device);
        let pairs = (!rows.rows.is_empty()).then(|| rows.tensors(device));
        (pairs.is_some() || paths.is_some()).then_some(Lesson { pairs, paths })
    }

    /// −ln likelihood of what should have been chosen, of path and pair and of what comes after them, of what that would
    /// have won, and of what every pair would have taken; then how much less than nothing is expected to be won by
    /// choosing as the network does; all summed over calls.
    pub fn losses(&self, leaves: &Leaves, said: &Said) -> [Tensor<1>; 5] {
        let mut losses = match &self.pairs {
            Some(pairs) => pairs.losses(leaves, said),
            None => std::array::from_fn(|_| Tensor::zeros([1], &said.estimates.device())),
        };
        if let Some((places, likely)) = &self.paths {
            let paths = said.ln_probabilities[Head::Path as usize].clone();
            let rows = paths.dims()[0];
            let paths = paths.reshape([rows * PATHS]).select(0, places.clone());
            losses[0] = losses[0].clone() + (paths * likely.clone()).sum().neg();
        }
        losses
    }
}

impl Pairs {
    /// The losses of a lesson without its paths.
    fn losses(&self, leaves: &Leaves, said: &Said) -> [Tensor<1>; 5] {
        let count = self.of_pairs.dims()[0];
        let of_pairs = leaves.get("resource.pair").select(0, self.pairs.clone());
        let u = leaves.tanh(said.resource.clone().select(0, self.rows.clone()) + of_pairs);
        let channels = leaves.layer("channels", u.clone()) + self.channels.clone();
        let channels = activation::log_softmax(channels, 1);
        let of_channels = leaves.get("chunk.channels").reshape([1, CHANNELS, CHUNKS]);
        let of_threads = leaves.get("gain.threads").select(0, self.threads.clone());
        let gain = self.surprise(leaves, leaves.layer("gain", u.clone()) + of_threads);
        let chunks = leaves.layer("chunk", u).reshape([count, 1, CHUNKS]) + self.chunks.clone();
        let chunks = activation::log_softmax(chunks + of_channels, 2);
        let pairs = said.ln_probabilities[Head::Pair as usize].clone();
        let rows = pairs.dims()[0];
        let pairs = pairs.reshape([rows * PAIRS]).select(0, self.places.clone());
        let lost = self.lost(&pairs, &channels, &chunks);
        let (channels, chunks) = (channels * self.of_channels.clone(), chunks * self.of_chunks.clone());
        let pairs = pairs * self.of_pairs.clone();
        let estimates = said.estimates.clone().reshape([rows * 2 * PAIRS]);
        let mean = estimates.clone().select(0, self.means.clone());
        let spread = estimates.select(0, self.means.clone() + PAIRS as i32);
        let times = surprise(mean, spread, &self.times, &self.timed);
        [pairs.sum().neg(), (channels.sum() + chunks.sum()).neg(), gain, times, lost]
    }

    /// Less than nothing is what choosing by these (ln) probabilities is expected to win. By likelihoods alone a choice
    /// that is often the best by a little and sometimes far worse would be a good one.
    fn lost(&self, pairs: &Tensor<1>, channels: &Tensor<2>, chunks: &Tensor<3>) -> Tensor<1> {
        let count = pairs.dims()[0];
        let both = channels.clone().reshape([count, CHANNELS, 1]) + chunks.clone();
        let won = (both.exp() * self.gains.clone()).reshape([count, CHANNELS * CHUNKS]).sum_dim(1);
        let counts = pairs.clone().exp() * self.settled.clone() + self.counts.clone();
        (won.reshape([count]) * counts).sum().neg()
    }

    /// −ln likelihood of the gains, each counted as it is likely to be chosen, from the sums of the gain without
    /// channels and chunk.
    fn surprise(&self, leaves: &Leaves, sums: Tensor<2>) -> Tensor<1> {
        let count = sums.dims()[0];
        let [mean, spread] = [0, 1].map(|part| {
            let of = |name, dims| leaves.get(name).narrow(1, part, 1).reshape(dims);
            let of_channels: Tensor<3> = of("gain.channels", [1, CHANNELS, 1]);
            let sums = sums.clone().narrow(1, part, 1).reshape([count, 1, 1]);
            sums + of_channels + of("gain.chunk", [1, 1, CHUNKS])
        });
        surprise(mean, spread, &self.gains, &self.of_chunks)
    }
}

impl Rows {
    /// Adds which path should have been taken, where there was one beside NCCL's.
    fn add_path(&mut self, at: usize, runs: &[Run], truth: &Truth, temperature: f32) {
        let by_nccl = runs.iter().map(|(_, gains)| best(gains)).fold(f32::NEG_INFINITY, f32::max);
        if truth.schedule.is_nan() || !by_nccl.is_finite() {
            return;
        }
        let paths = [Path::Nccl, Path::Synthesised].map(|path| (at * PATHS + path.id()) as i32);
        self.paths.extend(paths);
        self.of_paths.extend(likely([by_nccl, truth.schedule].into_iter(), temperature));
    }

    /// Adds what is known about a call.
    fn add(&mut self, at: usize, mask: [u32; HEADS], runs: &[Run], truth: &Truth, by: &LossConfig) {
        let temperature = by.temperature;
        let news = |pair: usize| if truth.tried >> pair & 1 == 1 { 0.0 } else { by.curiosity };
        let likely = likely(runs.iter().map(|(pair, gains)| best(gains) + news(*pair)), temperature);
        for ((pair, gains), likely_pair) in runs.iter().zip(&likely) {
            self.rows.push(at as i32);
            self.pairs.push(*pair as i32);
            self.of_pairs.push(*likely_pair);
            self.settled.push(if truth.tried == u32::MAX { 1.0 } else { 0.0 });
            forbid(mask[Head::Channels as usize], CHANNELS, &mut self.channels);
            forbid(mask[Head::Chunk as usize], CHUNKS, &mut self.chunks);
            let counts = 0.5 * (likely_pair + 1.0 / runs.len() as f32);
            self.counts.push(counts);
            let gain = self.add_resources(gains, counts, temperature);
            let time = truth.own[*pair] - gain;
            let known = time.is_finite();
            self.times.push(if known { time.clamp(-FARTHEST_TIME, FARTHEST_TIME) } else { 0.0 });
            self.timed.push(if known { 1.0 / runs.len() as f32 } else { 0.0 });
        }
    }

    /// Adds what a pair's resources should be, and says what it gains with them.
    fn add_resources(&mut self, gains: &[f32], counts: f32, temperature: f32) -> f32 {
        let mut mean = 0.0;
        let by_channels = likely(gains.chunks_exact(CHUNKS).map(best), temperature);
        self.gains.extend(gains.iter().map(|gain| {
            if gain.is_nan() { -FARTHEST_GAIN } else { gain.clamp(-FARTHEST_GAIN, FARTHEST_GAIN) }
        }));
        for (chunks, likely_channels) in gains.chunks_exact(CHUNKS).zip(by_channels) {
            let counts = counts * likely_channels;
            self.of_channels.push(counts);
            let by_chunk = likely(chunks.iter().copied(), temperature);
            let each = chunks.iter().zip(&by_chunk).filter(|(_, likely)| **likely > 0.0);
            mean += likely_channels * each.map(|(gain, likely)| gain * likely).sum::<f32>();
            self.of_chunks.extend(by_chunk.iter().map(|likely| counts * likely));
        }
        mean
    }

    /// The places of paths and how likely each should have been; none where no call had a schedule.
    fn paths(&self, device: &Device) -> Option<(Tensor<1, Int>, Tensor<1>)> {
        let choices = self.paths.len();
        (choices > 0).then(|| {
            let places = Tensor::from_data(TensorData::new(self.paths.clone(), [choices]), device);
            (places, Tensor::from_data(TensorData::new(self.of_paths.clone(), [choices]), device))
        })
    }

    fn tensors(self, device: &Device) -> Pairs {
        let count = self.rows.len();
        let place = |width: usize| {
            self.rows
                .iter()
                .zip(&self.pairs)
                .map(|(row, pair)| row * width as i32 + pair)
                .collect::<Vec<i32>>()
        };
        let (places, means) = (place(PAIRS), place(2 * PAIRS));
        let indices = |of: Vec<i32>| Tensor::from_data(TensorData::new(of, [count]), device);
        let column = |of: Vec<f32>| Tensor::from_data(TensorData::new(of, [count]), device);
        let chunks = |of: Vec<f32>, channels| {
            matrix(of, [count, channels * CHUNKS], device).reshape([count, channels, CHUNKS])
        };
        Pairs {
            places: indices(places),
            means: indices(means),
            times: column(self.times),
            timed: column(self.timed),
            counts: column(self.counts),
            settled: column(self.settled),
            rows: indices(self.rows),
            pairs: indices(self.pairs),
            channels: matrix(self.channels, [count, CHANNELS], device),
            chunks: chunks(self.chunks, 1),
            of_pairs: column(self.of_pairs),
            of_channels: matrix(self.of_channels, [count, CHANNELS], device),
            of_chunks: chunks(self.of_chunks, CHANNELS),
            gains: chunks(self.gains, CHANNELS),
            threads: indices(self.threads),
        }
    }
}

/// A pair that could have been chosen, and what it would have gained with each of its resources.
type Run = (usize, Vec<f32>);

/// The pairs that could have been chosen.
fn runs(mask: [u32; HEADS], truth: &Truth) -> Vec<Run> {
    let legal = (0..PAIRS).filter(|pair| mask[Head::Pair as usize] >> pair & 1 == 1);
    let allowed = |at: usize| {
        let [channels, chunks] = [Head::Channels, Head::Chunk].map(|head| mask[head as usize]);
        (channels >> (at / CHUNKS)) & (chunks >> (at % CHUNKS)) & 1 == 1
    };
    let of_pair = |pair: usize| -> Vec<f32> {
        let gains = truth.gains[pair * CHANNELS * CHUNKS..][..CHANNELS * CHUNKS].iter().enumerate();
        gains.map(|(at, &gain)| if allowed(at) { gain } else { f32::NAN }).collect()
    };
    let runs = legal.map(|pair| (pair, of_pair(pair)));
    runs.filter(|(_, gains)| best(gains).is_finite()).collect()
}

/// The largest gain; −∞ where there is none.
fn best(gains: &[f32]) -> f32 {
    gains.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// How likely choices with these gains should have been: not at all where one cannot run, or none can.
fn likely(gains: impl Iterator<Item = f32>, temperature: f32) -> Vec<f32> {
    let gains: Vec<f32> = gains.map(|gain| if gain.is_nan() { f32::NEG_INFINITY } else { gain }).collect();
    let best = best(&gains);
    if !best.is_finite() {
        return vec![0.0; gains.len()];
    }
    let weights: Vec<f32> = gains
        .iter()
        .map(|gain| if gain.is_finite() { exp((gain - best) / temperature) } else { 0.0 })
        .collect();
    let sum: f32 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}
