//! The chunk size, which NCCL asks for after it has chosen.
//!
//! NCCL asks per channel (with the bytes of one channel's part and 1 as their number), up to three times for
//! a collective, and does not say which call it belongs to. But a collective that runs was asked about in the same
//! group just before, on every rank: so the last answer for this collective and pair is its own, or that
//! of another call in its group, the same on all ranks.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use dynamiccl_spec::{ChunkChoice, Collective, Pair};

use super::answer::Answer;

/// The chunk sizes of what was answered last.
#[derive(Debug, Default)]
pub struct Chunks([AtomicU32; Collective::TUNED.len()]);

impl Chunks {
    /// Takes note of an answer.
    #[inline]
    pub fn note(&self, collective: Collective, answer: Answer) {
        let pair = answer.entry().map_or(0, |(pair, _)| 1 + pair as u32);
        let new = pair << 8 | answer.chunk() as u32;
        // Mostly it is there already, and what nobody writes every core can keep.
        if let Some(last) = self.0.get(collective.id()).filter(|last| last.load(Relaxed) != new) {
            last.store(new, Relaxed);
        }
    }

    /// The chunk size of a collective that runs with this pair, where NCCL would take `own`.
    pub fn size(&self, collective: Collective, pair: Pair, own: usize) -> usize {
        let last = self.0.get(collective.id()).map_or(0, |last| last.load(Relaxed));
        let chunk = ChunkChoice::ALL.get((last & 0xff) as usize).copied().unwrap_or_default();
        let same = last >> 8 == 1 + pair.index() as u32;
        if same { scaled(chunk, pair, own) } else { own }
    }
}

/// NCCL rounds down to whole grains and divides by the result: it must never be less than one.
fn scaled(chunk: ChunkChoice, pair: Pair, own: usize) -> usize {
    let grain = pair.protocol.grain() as usize;
    let whole = chunk != ChunkChoice::Own && (grain..=i32::MAX as usize).contains(&own);
    if !whole {
        return own;
    }
    let wanted = chunk.apply(own as u64, pair) as usize;
    (wanted / grain * grain).max(grain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuner::call::RawTable;
    use dynamiccl_spec::{Algorithm, ChannelChoice, CostTable, Knobs, Protocol};

    fn answer(pair: Pair, chunk: ChunkChoice) -> Answer {
        let mut known = CostTable::default();
        known.set(pair, 10.0);
        let table = RawTable { known, beyond: f32::INFINITY };
        Answer::new(&Knobs { chunk, ..Knobs::with_pair(pair, ChannelChoice::OWN) }, 5.0, &table, 1)
    }

    #[test]
    fn a_chunk_is_for_the_pair_and_the_collective_that_were_answered_last() {
        let (ring, tree) = [Algorithm::Ring, Algorithm::Tree].map(|a| Pair::new(a, Protocol::Simple)).into();
        let chunks = Chunks::default();
        let size = |collective, pair| chunks.size(collective, pair, 1 << 20);
        assert_eq!(size(Collective::AllReduce, ring), 1 << 20);
        chunks.note(Collective::AllReduce, answer(ring, ChunkChoice::Half));
        assert_eq!(size(Collective::AllReduce, ring), 1 << 19);
        assert_eq!(
            (size(Collective::AllReduce, tree), size(Collective::AllGather, ring)),
            (1 << 20, 1 << 20)
        );
        chunks.note(Collective::AllReduce, Answer::OWN);
        assert_eq!(size(Collective::AllReduce, ring), 1 << 20);
    }

    #[test]
    fn no_chunk_is_less_than_a_grain() {
        for &protocol in Protocol::ALL {
            let (grain, pair) = (protocol.grain() as usize, Pair::new(Algorithm::Ring, protocol));
            for chunk in ChunkChoice::ALL {
                for own in [grain, grain + 1, 2 * grain, 5 * grain, 4096, 1 << 20, 1 << 30] {
                    let size = scaled(chunk, pair, own);
                    assert!(size >= grain.min(own), "{protocol} {chunk:?} {own}: {size}");
                    assert!(chunk == ChunkChoice::Own || own < grain || size.is_multiple_of(grain));
                }
                // What NCCL cannot mean is left alone.
                for own in [0, 1, grain - 1, usize::MAX, 1 << 40] {
                    assert_eq!(scaled(chunk, pair, own), own);
                }
            }
        }
        let ring = |protocol| Pair::new(Algorithm::Ring, protocol);
        assert_eq!(scaled(ChunkChoice::Quarter, ring(Protocol::Simple), 1 << 19), 1 << 17);
        assert_eq!(scaled(ChunkChoice::Double, ring(Protocol::LL), 32), 64);
    }

    /// NVLS writes into buffers that are cut for NCCL's own chunk: a larger one would run into the next.
    #[test]
    fn no_chunk_of_nvls_is_more_than_nccls_own() {
        for algorithm in [Algorithm::Nvls, Algorithm::NvlsTree] {
            let pair = Pair::new(algorithm, Protocol::Simple);
            for own in [64 << 10, 128 << 10] {
                let sizes = ChunkChoice::ALL.map(|chunk| scaled(chunk, pair, own));
                assert_eq!(sizes, [own, own / 4, own / 2, own, own]);
            }
        }
    }
}
