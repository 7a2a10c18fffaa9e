//! From what an expert says of a call to one choice for each head, in the order of decisions.
//!
//! Single and batched decisions both end here, so they cannot differ. Who chooses is the caller's: the
//! most probable when deployed, at random while training.

use dynamiccl_spec::features::TIME_SCALE;
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::table::CostTable;
use dynamiccl_spec::{Choice, Head, Mask};

use super::activation::{exp, exp_within, tanh_all};
use super::layout::{CHANNELS, CHUNK, GAIN, MEANS, PAIR, PATH, RESOURCE, THREADS};
use super::net::Network;

/// ln of the largest factor between an estimated time and NCCL's prediction.
pub(super) const FARTHEST: f32 = 8.0;
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

/// The mean of ln(time ÷ NCCL's predicted time) of every pair, as a network expects it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimates(pub [f32; PAIRS]);

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
        Estimates(sums[MEANS].try_into().expect("one for each pair"))
    }

    /// NCCL's predicted µs, put right: above 0 and finite where NCCL's are available, as they are elsewhere.
    #[inline]
    pub fn micros(&self, predicted: &CostTable) -> CostTable {
        let mut micros = *predicted;
        for (cost, mean) in micros.0.as_flattened_mut().iter_mut().zip(self.0) {
            let mean = if mean.is_nan() { 0.0 } else { mean };
            let mean = if mean < FARTHEST { mean } else { FARTHEST };
            let mean = if mean > -FARTHEST { mean } else { -FARTHEST };
            let corrected = *cost * exp_within(mean);
            let corrected = if corrected > SHORTEST { corrected } else { SHORTEST };
            let corrected = if corrected < f32::MAX { corrected } else { f32::MAX };
            let available = (0.0..f32::INFINITY).contains(cost);
            *cost = if available { corrected } else { *cost };
        }
        micros
    }
}

/// The index of the largest logit, the first of equals, but `own` where none is larger than its: NCCL's
/// pick stays unless another is better.
#[inline]
pub fn greedy(logits: &[f32], own: usize) -> usize {
    // Without a branch on a comparison that nobody can foresee, and not each waiting for the one before.
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let (fours, rest) = logits.as_chunks::<4>();
    let mut four = [f32::NEG_INFINITY; 4];
    for logits in fours {
        four.iter_mut().zip(logits).for_each(|(largest, &x)| *largest = larger(x, *largest));
    }
    let largest = four.iter().chain(rest).fold(f32::NEG_INFINITY, |largest, &x| larger(x, largest));
    let are = logits.iter().enumerate().fold(0_u32, |are, (at, &x)| are | u32::from(x == largest) << at);
    if are >> own & 1 == 1 { own } else { are.trailing_zeros() as usize }
}

impl Network {
    /// Chooses head by head. `first` are the sums over what the expert says, `last` is room for those over
    /// the resources, `cost` the features of NCCL's predicted times.
    ///
    /// `choose` is given a head and its logits, −∞ where the mask forbids and finite elsewhere, and says
    /// which one it takes.
    #[inline(always)]
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
            *logit = sum - self.anchor * (TIME_SCALE * cost);
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
        add_row(gain, &self.added.threads_to_gain, threads);
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

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::Pair;

    const FORBIDDEN: f32 = f32::NEG_INFINITY;

    #[test]
    fn the_largest_is_taken_and_nccls_own_among_equals() {
        assert_eq!(greedy(&[1.0, 3.0, 2.0, 3.0, 0.0], 0), 1);
        assert_eq!(greedy(&[1.0, 3.0, 2.0, 3.0, 0.0], 3), 3);
        assert_eq!(greedy(&[0.0, -0.0, 0.0], 1), 1);
        assert_eq!(greedy(&[FORBIDDEN, FORBIDDEN, f32::MIN], 0), 2);
        let mut logits: Vec<f32> = (0..21).map(|at| at as f32).collect();
        for at in 0..21 {
            logits[at] = 100.0;
            assert_eq!(greedy(&logits, 0), at);
            logits[at] = 0.0;
        }
    }

    #[test]
    fn a_mask_forbids_and_what_is_no_number_comes_last() {
        let mask = Mask::ALL.with(Head::Chunk, 0b11010);
        let mut seen = Vec::new();
        let sums = [9.0, f32::NAN, 9.0, -1.0, f32::INFINITY];
        pick::<5>(Head::Chunk, &sums, &mask, &mut |head, logits: &[f32]| {
            seen.push((head, logits.to_vec()));
            greedy(logits, 0)
        });
        assert_eq!(seen, [(Head::Chunk, vec![FORBIDDEN, f32::MIN, FORBIDDEN, -1.0, f32::MAX])]);
    }

    #[test]
    fn estimated_times_are_above_zero_and_finite_and_only_where_there_are_any() {
        let mut predicted = CostTable::default();
        let of = |at| Pair::from_index(at).unwrap();
        let costs = [0.0, 10.0, f32::MAX, f32::NAN, f32::INFINITY, -1024.0];
        costs.into_iter().enumerate().for_each(|(at, cost)| predicted.set(of(at), cost));
        assert_eq!(Estimates::default().micros(&predicted).get(of(1)), Some(10.0));
        for mean in [f32::MIN, -3.0, 0.0, 0.5, f32::MAX, f32::NAN, f32::INFINITY] {
            let micros = Estimates([mean; PAIRS]).micros(&predicted);
            assert!((0..3).all(|at| micros.get(of(at)).is_some_and(|us| us > 0.0)), "{mean}: {micros:?}");
            let bits =
                |table: &CostTable| table.0.as_flattened()[3..].iter().map(|us| us.to_bits()).collect();
            let [left, right]: [Vec<u32>; 2] = [bits(&micros), bits(&predicted)];
            assert_eq!(left, right);
        }
    }
}
