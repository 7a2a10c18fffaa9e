//! A choice of knobs as one index per head: the form in which a network acts and a mask forbids.
//!
//! The order of heads is the order of decisions: path, then algorithm × protocol, then channels, then
//! chunk, each conditioned on the ones before; threads on the first call of a process. The order of
//! values within a head is frozen with a policy and never changes.

use serde::{Deserialize, Serialize};

use crate::ids::{PAIRS, Pair};
use crate::knobs::{ChannelChoice, ChunkChoice, Knobs, Path, ThreadChoice};
use crate::table::PairMask;
use crate::words::word_enum;

/// Number of heads.
pub const HEADS: usize = 5;

word_enum! {
    /// One head of the policy.
    Head, "head", {
        /// Who carries the call.
        Path = 0 => "path",
        /// Algorithm × protocol, in the order of NCCL's table.
        Pair = 1 => "pair",
        /// Channels to ask for.
        Channels = 2 => "channels",
        /// Chunk size.
        Chunk = 3 => "chunk",
        /// Threads per block.
        Threads = 4 => "threads",
    }
}

impl Head {
    /// How many values it has.
    pub const fn size(self) -> usize {
        match self {
            Head::Path => Path::ALL.len(),
            Head::Pair => PAIRS,
            Head::Channels => ChannelChoice::VALUES.len(),
            Head::Chunk => ChunkChoice::ALL.len(),
            Head::Threads => ThreadChoice::VALUES.len(),
        }
    }

    /// What one of its values is called.
    pub fn label(self, index: usize) -> Option<String> {
        let own = |n: u64| if n == 0 { "own".to_owned() } else { n.to_string() };
        match self {
            Head::Path => Path::ALL.get(index).map(|path| path.name().to_owned()),
            Head::Pair => Pair::from_index(index).map(|pair| pair.to_string()),
            Head::Channels => ChannelChoice::VALUES.get(index).map(|&n| own(u64::from(n))),
            Head::Chunk => ChunkChoice::ALL.get(index).map(|chunk| chunk.name().to_owned()),
            Head::Threads => ThreadChoice::VALUES.get(index).map(|&n| own(u64::from(n))),
        }
    }
}

/// One index per head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Choice(pub [u8; HEADS]);

impl Choice {
    /// The indices of these knobs, where `own` is the pair that NCCL would take.
    pub fn of(knobs: &Knobs, own: Pair) -> Self {
        let at = |found: Option<usize>| found.unwrap_or(0) as u8;
        Choice([
            knobs.path as u8,
            knobs.pair.unwrap_or(own).index() as u8,
            at(ChannelChoice::all().position(|c| c == knobs.channels)),
            at(ChunkChoice::ALL.iter().position(|&c| c == knobs.chunk)),
            at(ThreadChoice::all().position(|t| t == knobs.threads)),
        ])
    }

    /// The index that a head has chosen.
    pub const fn index(&self, head: Head) -> usize {
        self.0[head as usize] as usize
    }

    /// The knobs, if every index names a value.
    pub fn knobs(&self) -> Option<Knobs> {
        Some(Knobs {
            path: *Path::ALL.get(self.index(Head::Path))?,
            pair: Some(Pair::from_index(self.index(Head::Pair))?),
            channels: ChannelChoice::all().nth(self.index(Head::Channels))?,
            chunk: *ChunkChoice::ALL.get(self.index(Head::Chunk))?,
            threads: ThreadChoice::all().nth(self.index(Head::Threads))?,
        })
    }
}

/// Which values of each head may be chosen, as bits by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mask([u32; HEADS]);

impl Mask {
    /// Every value of every head.
    pub const ALL: Mask = Mask([
        all_of(Head::Path),
        all_of(Head::Pair),
        all_of(Head::Channels),
        all_of(Head::Chunk),
        all_of(Head::Threads),
    ]);

    /// Nothing to choose: the first value of every head.
    pub const FIRST: Mask = Mask([1; HEADS]);

    /// The mask with these bits; those that name no value are left out.
    pub fn of_bits(bits: [u32; HEADS]) -> Self {
        Head::ALL.iter().fold(Mask::ALL, |mask, &head| mask.with(head, bits[head as usize]))
    }

    /// The bits of a head.
    pub const fn bits(&self, head: Head) -> u32 {
        self.0[head as usize]
    }

    /// The same with these bits for a head.
    pub const fn with(mut self, head: Head, bits: u32) -> Self {
        self.0[head as usize] = bits & all_of(head);
        self
    }

    /// The same with only one value left for a head.
    pub const fn only(self, head: Head, index: usize) -> Self {
        self.with(head, 1 << index)
    }

    /// The same with these pairs.
    pub const fn with_pairs(self, pairs: PairMask) -> Self {
        self.with(Head::Pair, pairs.bits())
    }

    /// The pairs that may be chosen.
    pub const fn pairs(&self) -> PairMask {
        PairMask::from_bits(self.bits(Head::Pair))
    }

    /// The bits of every head.
    pub const fn all_bits(&self) -> [u32; HEADS] {
        self.0
    }

    /// Whether there is anything to choose.
    pub fn decides(&self) -> bool {
        self.0.iter().any(|bits| bits.count_ones() > 1)
    }

    /// Whether a value of a head may be chosen.
    pub const fn allows(&self, head: Head, index: usize) -> bool {
        index < head.size() && self.bits(head) & (1 << index) != 0
    }

    /// How many values of a head may be chosen.
    pub const fn count(&self, head: Head) -> u32 {
        self.bits(head).count_ones()
    }

    /// The indices of a head that may be chosen.
    pub fn indices(&self, head: Head) -> impl Iterator<Item = usize> + '_ {
        (0..head.size()).filter(move |&index| self.allows(head, index))
    }

    /// The first head whose choice is not allowed.
    pub fn refuses(&self, choice: &Choice) -> Option<Head> {
        Head::ALL.iter().copied().find(|&head| !self.allows(head, choice.index(head)))
    }
}

const fn all_of(head: Head) -> u32 {
    (1 << head.size()) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Algorithm, Protocol};

    #[test]
    fn every_value_has_a_label_of_its_own() {
        for &head in Head::ALL {
            let labels: Vec<_> = (0..head.size()).map(|i| head.label(i).unwrap()).collect();
            let mut unique = labels.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), head.size(), "{labels:?}");
            assert_eq!(head.label(head.size()), None);
        }
    }

    #[test]
    fn knobs_and_indices_are_the_same_thing() {
        let ring = Pair::new(Algorithm::Ring, Protocol::LL);
        for index in 0..Head::Channels.size() as u8 {
            for chunk in 0..Head::Chunk.size() as u8 {
                let choice = Choice([0, ring.index() as u8, index, chunk, index % 5]);
                assert_eq!(Choice::of(&choice.knobs().unwrap(), ring), choice);
            }
        }
        assert_eq!(Choice::of(&Knobs::OWN, ring), Choice([0, ring.index() as u8, 0, 0, 0]));
        assert_eq!(Choice([0, PAIRS as u8, 0, 0, 0]).knobs(), None);
    }

    #[test]
    fn a_mask_refuses_what_it_does_not_hold() {
        let mask = Mask::ALL.only(Head::Threads, 0).with(Head::Path, 0b001);
        assert_eq!(mask.refuses(&Choice([0, 3, 2, 1, 0])), None);
        assert_eq!(mask.refuses(&Choice([0, 3, 2, 1, 1])), Some(Head::Threads));
        assert_eq!(mask.refuses(&Choice([1, 3, 2, 1, 1])), Some(Head::Path));
        assert_eq!(mask.refuses(&Choice([0, 3, 200, 1, 0])), Some(Head::Channels));
        assert_eq!(mask.indices(Head::Path).collect::<Vec<_>>(), [0]);
    }
}
