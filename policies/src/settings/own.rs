//! The knobs of a call as a space: pair × channels × chunk, as far as the call's mask allows them.
//!
//! Threads stay NCCL's own: they can be set once per process only, so no search over calls can try them.

use dynamiccl_spec::{ChannelChoice, ChunkChoice, CostTable, Head, Knobs, Mask, Pair};

use super::kernel_width;
use crate::search::{Dimension, Point, Space};

/// Chunks from small to large, as indices of [`ChunkChoice::ALL`].
const CHUNKS: [usize; 5] = [1, 2, 0, 3, 4];
/// A pair that NCCL predicts to take this many times as long as its own is no arm of a bandit.
const FAR: f32 = 8.0;
/// Channels of a bandit's arms beside NCCL's own.
const ARM_CHANNELS: [u32; 3] = [2, 8, 32];

/// The settings of one kind of call.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnSettings {
    own: Pair,
    pairs: Vec<Pair>,
    /// In order of count; NCCL's own last.
    channels: Vec<ChannelChoice>,
    chunks: Vec<ChunkChoice>,
}

impl OwnSettings {
    /// The settings that a mask leaves of a call for which NCCL would take `own`.
    pub fn new(mask: &Mask, own: Pair) -> Self {
        let counts = ChannelChoice::all().enumerate().skip(1);
        let counts = counts.filter(|(index, _)| mask.allows(Head::Channels, *index)).map(|(_, count)| count);
        let chunks = CHUNKS.into_iter().filter(|&index| mask.allows(Head::Chunk, index));
        OwnSettings {
            own,
            pairs: mask.indices(Head::Pair).filter_map(Pair::from_index).collect(),
            channels: counts.chain([ChannelChoice::OWN]).collect(),
            chunks: chunks.map(|index| ChunkChoice::ALL[index]).collect(),
        }
    }

    /// The space of them: the pair without order, counts and chunks in order.
    pub fn space(&self) -> Space {
        Space::new(&[
            Dimension::named(self.pairs.len()),
            Dimension::ordered_and_own(self.channels.len() - 1),
            Dimension::ordered(self.chunks.len()),
        ])
    }

    /// NCCL's own setting.
    pub fn own(&self) -> Point {
        let pair = self.pairs.iter().position(|&pair| pair == self.own).unwrap_or(0);
        Point::default().with(0, pair).with(1, self.channels.len() - 1).with(2, self.own_chunk())
    }

    fn own_chunk(&self) -> usize {
        self.chunks.iter().position(|&chunk| chunk == ChunkChoice::Own).unwrap_or(0)
    }

    /// The knobs of a point.
    pub fn knobs(&self, point: &Point) -> Knobs {
        Knobs {
            chunk: self.chunks[point.value(2)],
            ..Knobs::with_pair(self.pairs[point.value(0)], self.channels[point.value(1)])
        }
    }

    /// MRACO's kernel widths, by pair.
    pub fn widths(&self) -> Vec<f64> {
        self.pairs.iter().map(|pair| kernel_width(pair.protocol)).collect()
    }

    /// Few enough settings that each can be played: NCCL's own, then every pair that NCCL does not predict
    /// to be far slower, the one predicted fastest first, with NCCL's own channels and a few other counts.
    pub fn arms(&self, predicted: &CostTable) -> Vec<Point> {
        let own = self.own();
        let cost = |pair: Pair| predicted.get(pair).unwrap_or(f32::MAX);
        let mut near: Vec<usize> =
            (0..self.pairs.len()).filter(|&i| cost(self.pairs[i]) <= FAR * cost(self.own)).collect();
        near.sort_by(|&a, &b| cost(self.pairs[a]).total_cmp(&cost(self.pairs[b])));
        let mut arms = vec![own];
        arms.extend(near.iter().map(|&pair| own.with(0, pair)).filter(|&arm| arm != own));
        for count in ARM_CHANNELS {
            let Some(index) = self.channels.iter().position(|c| c.requested() == Some(count)) else {
                continue;
            };
            arms.extend(near.iter().map(|&pair| own.with(0, pair).with(1, index)));
        }
        arms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::{Algorithm, PairMask, Protocol};

    const TREE: Pair = Pair::new(Algorithm::Tree, Protocol::LL128);
    const RING: Pair = Pair::new(Algorithm::Ring, Protocol::Simple);

    fn mask() -> Mask {
        Mask::ALL.only(Head::Path, 0).only(Head::Threads, 0).with_pairs(PairMask::NONE.with(TREE).with(RING))
    }

    #[test]
    fn points_are_knobs_in_their_order() {
        let settings = OwnSettings::new(&mask(), RING);
        let space = settings.space();
        assert_eq!(space.points(), 2 * 10 * 5);
        let own = settings.own();
        assert_eq!(settings.knobs(&own), Knobs::with_pair(RING, ChannelChoice::OWN));
        let counts: Vec<_> =
            (0..10).map(|count| settings.knobs(&own.with(1, count)).channels.requested()).collect();
        assert!(counts[..9].is_sorted() && counts[0] == Some(1) && counts[9].is_none(), "{counts:?}");
        let chunk = |index| settings.knobs(&own.with(2, index)).chunk;
        let chunks: Vec<_> = (0..5).map(|index| chunk(index).apply(64, RING)).collect();
        assert_eq!(chunks, [16, 32, 64, 128, 256]);
        let mut seen: Vec<Knobs> = (0..space.points()).map(|i| settings.knobs(&space.point(i))).collect();
        seen.dedup();
        assert_eq!(seen.len(), 100);
        assert_eq!(settings.widths(), [1.5, 1.0]);
    }

    #[test]
    fn a_narrow_mask_leaves_a_narrow_space() {
        let narrow = mask().only(Head::Channels, 0).only(Head::Chunk, 0);
        let settings = OwnSettings::new(&narrow, TREE);
        assert_eq!(settings.space().points(), 2);
        assert_eq!(settings.knobs(&settings.own()), Knobs::with_pair(TREE, ChannelChoice::OWN));
    }

    #[test]
    fn arms_begin_with_nccls_own_and_leave_out_what_is_far() {
        let mut table = CostTable::default();
        table.set(RING, 10.0);
        table.set(TREE, 12.0);
        let settings = OwnSettings::new(&mask(), RING);
        let arms = settings.arms(&table);
        assert_eq!((arms[0], arms.len()), (settings.own(), 2 + 2 * ARM_CHANNELS.len()));
        assert!((1..arms.len()).all(|i| !arms[..i].contains(&arms[i])), "{arms:?}");
        table.set(TREE, 1000.0);
        assert_eq!(settings.arms(&table).len(), 1 + ARM_CHANNELS.len());
    }
}
