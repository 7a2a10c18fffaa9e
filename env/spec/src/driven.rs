//! What a program that measures and the plugin in its own process say to each other: what to do with the next calls, and
//! what has become of them.
//!
//! The two sides of the library's border must mean the same by it, so it stands here. An order fits into one word, so that
//! a call can read it without a lock. Who gives orders, and how they are carried out, is not known here.

use serde::{Deserialize, Serialize};

use crate::ids::{PAIRS, Pair};
use crate::knobs::{ChannelChoice, ChunkChoice, Knobs};

/// The symbol of the library's table of functions: its name, one that takes the word of an order, and one that writes
/// [`RawSeen`].
pub const DRIVER: &str = "dynamicclDriver_v1";

/// The first version of NCCL's interface that asks for chunk sizes.
pub const CHUNKS_SINCE: u32 = 6;

/// What has happened since the last order, as it crosses the border.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct RawSeen {
    /// Calls.
    pub calls: u64,
    /// Those that could not get what was ordered.
    pub refused: u64,
    /// Bytes of the last.
    pub bytes: u64,
    /// The version of NCCL's interface.
    pub interface: u32,
    /// `ncclFunc_t` of the last.
    pub collective: i32,
    /// The pair whose entry was written, −1 for none.
    pub pair: i32,
    /// Channels that were asked for, 0 for NCCL's own.
    pub channels: i32,
    /// The chunk size that was asked for, by its number.
    pub chunk: i32,
    /// NCCL's own table of the last.
    pub table: [f32; PAIRS],
}

// Another layout is another interface: it gets another symbol.
const _: () = assert!(size_of::<RawSeen>() == 128);

impl RawSeen {
    /// Nothing has happened.
    pub const NOTHING: RawSeen = RawSeen {
        calls: 0,
        refused: 0,
        bytes: 0,
        interface: 0,
        collective: 0,
        pair: -1,
        channels: 0,
        chunk: 0,
        table: [-1.0; PAIRS],
    };
}

/// What is to be done with calls until the next order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Nothing: NCCL does as it would by itself.
    #[default]
    Own,
    /// What the policy decides, as in a job.
    Policy,
    /// This pair, with these channels and this chunk size.
    Knobs {
        /// Algorithm and protocol.
        pair: Pair,
        /// Channels to ask for.
        channels: ChannelChoice,
        /// Chunk size.
        chunk: ChunkChoice,
    },
}

const OWN: u64 = 0;
const POLICY: u64 = 1;
const KNOBS: u64 = 2;

impl Order {
    /// These knobs; none where they leave the pair to NCCL, which no tuner can hand over.
    pub fn of(knobs: &Knobs) -> Option<Self> {
        let &Knobs { channels, chunk, .. } = knobs;
        knobs.pair.map(|pair| Order::Knobs { pair, channels, chunk })
    }

    /// As one word.
    pub fn bits(self) -> u64 {
        match self {
            Order::Own => OWN,
            Order::Policy => POLICY,
            Order::Knobs { pair, channels, chunk } => {
                let channels = u64::from(channels.requested().unwrap_or(0));
                let chunk = ChunkChoice::ALL.iter().position(|&known| known == chunk).unwrap_or(0);
                KNOBS | (pair.index() as u64) << 8 | channels << 16 | (chunk as u64) << 24
            }
        }
    }

    /// From one word; none where it is no order.
    pub fn of_bits(bits: u64) -> Option<Self> {
        let [kind, pair, channels, chunk, rest @ ..] = bits.to_le_bytes();
        match u64::from(kind) {
            OWN if bits == OWN => Some(Order::Own),
            POLICY if bits == POLICY => Some(Order::Policy),
            KNOBS if rest == [0; 4] => Some(Order::Knobs {
                pair: Pair::from_index(pair.into())?,
                channels: ChannelChoice::of(channels)?,
                chunk: *ChunkChoice::ALL.get(usize::from(chunk))?,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_survives_the_word() {
        let knobs = Pair::all().flat_map(|pair| {
            ChannelChoice::all().flat_map(move |channels| {
                ChunkChoice::ALL.map(|chunk| Order::Knobs { pair, channels, chunk })
            })
        });
        let mut seen = std::collections::HashSet::new();
        for order in [Order::Own, Order::Policy].into_iter().chain(knobs) {
            assert_eq!(Order::of_bits(order.bits()), Some(order));
            assert!(seen.insert(order.bits()), "{order:?}");
        }
        assert_eq!(seen.len(), 2 + 21 * 10 * 5);
    }

    #[test]
    fn what_is_no_order_is_none() {
        for bits in [3, 0x100, 2 | 21 << 8, 2 | 3 << 16, 2 | 5 << 24, 2 | 1 << 40, u64::MAX] {
            assert_eq!(Order::of_bits(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn a_pair_that_is_nccls_own_cannot_be_ordered() {
        assert_eq!(Order::of(&Knobs::OWN), None);
    }
}
