//! From what an expert says of a call to one choice for each head, in the order of decisions.
//!
//! Single and batched decisions both end here, so they cannot differ. Who chooses is the caller's: the
//! most probable when deployed, at random while training.

use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::table::CostTable;
use dynamiccl_spec::{Choice, Head, Mask};

use super::activation::{exp, tanh_all};
use super::layout::{CHANNELS, CHUNK, GAIN, MEANS, PAIR, PATH, RESOURCE, SPREADS, THREADS};
use super::net::Network;

/// What the feature of a predicted time has been divided by.
const COST_SCALE: f32 = 8.0;
/// ln of the largest factor between an estimated time and NCCL's prediction.
const FARTHEST: f32 = 8.0;
/// The shortest estimated time, in µs.
const SHORTEST: f32 = 1e-3;

/// What a network has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Acted {
    /// One index for each head.
    pub choice: Choice,
    /// What it expects to win by it.
    pub gain: Gain,
}

/// ln(NCCL's own time ÷ the time of the chosen knobs), as a network expects it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gain {
    /// Its mean.
    pub mean: f32,
    /// ln of its spread.
    pub ln_spread: f32,
}

/// ln(time ÷ NCCL's predicted time) of every pair, as a network expects it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimates {
    /// Means.
    pub means: [f32; PAIRS],
    /// ln of spreads.
    pub ln_spreads: [f32; PAIRS],
}

impl Gain {
    /// Its spread.
    #[inline]
    pub fn spread(&self) -> f32 {
        exp(self.ln_spread)
    }
}

impl Estimates {
    /// The estimates among the sums of the first heads.
    #[inline]
    pub(super) fn of(sums: &[f32]) -> Self {
        let part = |range: std::ops::Range<usize>| sums[range].try_into().expect("one for each pair");
        Estimates { means: part(MEANS), ln_spreads: part(SPREADS) }
    }

    /// NCCL's predicted µs, put right: above 0 and finite where NCCL's are available, as they are elsewhere.
    #[inline]
    pub fn micros(&self, predicted: &CostTable) -> CostTable {
        let mut micros = *predicted;
        for (cost, mean) in micros.0.as_flattened_mut().iter_mut().zip(self.means) {
            let mean = if mean < FARTHEST { mean } else { FARTHEST };
            let mean = if mean > -FARTHEST { mean } else { -FARTHEST };
            let corrected = (*cost * exp(mean)).clamp(SHORTEST, f32::MAX);
            let available = *cost >= 0.0 && *cost < f32::INFINITY;
            *cost = if available { corrected } else { *cost };
        }
        micros
    }
}

/// The index of the largest logit, the first of equals, but `own` where none is larger than its: NCCL's
/// pick stays unless another is better.
#[inline]
pub fn greedy(logits: &[f32], own: usize) -> usize {
    let (mut index, mut largest) = (own, logits[own]);
    for (at, &logit) in logits.iter().enumerate() {
        if logit > largest {
            (index, largest) = (at, logit);
        }
    }
    index
}

impl Network {
    /// Chooses head by head. `first` are the sums over what the expert says, `last` is room for those over
    /// the resources, `cost` the features of NCCL's predicted times.
    ///
    /// `choose` is given a head and its logits, −∞ where the mask forbids and finite elsewhere, and says
    /// which one it takes.
    #[inline]
    pub(super) fn choose(
        &self,
        first: &mut [f32],
        last: &mut [f32],
        cost: &[f32],
        mask: &Mask,
        mut choose: impl FnMut(Head, &[f32]) -> usize,
    ) -> Acted {
        let path = pick::<{ Head::Path.size() }>(Head::Path, &first[PATH], mask, &mut choose);
        let mut pairs = [0.0; PAIRS];
        for ((logit, sum), cost) in pairs.iter_mut().zip(&first[PAIR]).zip(cost) {
            *logit = sum - self.anchor * (COST_SCALE * cost);
        }
        let pair = pick::<PAIRS>(Head::Pair, &pairs, mask, &mut choose);
        let resource = &mut first[RESOURCE..][..self.shape.resource];
        add_row(resource, &self.added.path_to_resource, path);
        add_row(resource, &self.added.pair_to_resource, pair);
        tanh_all(resource);
        self.last_heads.begin(last);
        self.last_heads.add(0, resource, last);
        let channels = pick::<{ Head::Channels.size() }>(Head::Channels, &last[CHANNELS], mask, &mut choose);
        add_row(&mut last[CHUNK], &self.added.channels_to_chunk, channels);
        let chunk = pick::<{ Head::Chunk.size() }>(Head::Chunk, &last[CHUNK], mask, &mut choose);
        let threads = pick::<{ Head::Threads.size() }>(Head::Threads, &last[THREADS], mask, &mut choose);
        let gain = &mut last[GAIN];
        add_row(gain, &self.added.channels_to_gain, channels);
        add_row(gain, &self.added.chunk_to_gain, chunk);
        Acted {
            choice: Choice([path, pair, channels, chunk, threads].map(|index| index as u8)),
            gain: Gain { mean: gain[0], ln_spread: gain[1] },
        }
    }
}

/// One choice of a head with `N` values.
#[inline(always)]
fn pick<const N: usize>(
    head: Head,
    sums: &[f32],
    mask: &Mask,
    choose: &mut impl FnMut(Head, &[f32]) -> usize,
) -> usize {
    let bits = mask.bits(head);
    let mut logits = [f32::NEG_INFINITY; N];
    for (at, (logit, &sum)) in logits.iter_mut().zip(sums).enumerate() {
        // What has grown beyond all numbers can still be chosen, if only after every other.
        let sum = if sum > f32::MIN { sum } else { f32::MIN };
        let sum = if sum < f32::MAX { sum } else { f32::MAX };
        *logit = if bits >> at & 1 == 1 { sum } else { f32::NEG_INFINITY };
    }
    choose(head, &logits)
}

/// Adds the row of one value of an earlier head.
#[inline(always)]
fn add_row(sums: &mut [f32], rows: &[f32], value: usize) {
    let row = &rows[value * sums.len()..][..sums.len()];
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
}
