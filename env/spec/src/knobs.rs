//! What can be chosen for one collective call.
//!
//! Each knob has "NCCL's own" among its values: a policy that always takes it is NCCL's default.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Algorithm, Pair, Protocol};
use crate::words::{UnknownWord, look_up, word_enum};

word_enum! {
    /// Who carries the call. The last two leave NCCL's table alone and are reported.
    #[derive(Default)]
    Path, "path", {
        /// NCCL itself.
        #[default]
        Nccl = 0 => "nccl",
        /// In-network aggregation, passed through untouched.
        InNetwork = 1 => "in_network",
        /// A synthesised schedule.
        Synthesised = 2 => "synthesised",
    }
}

word_enum! {
    /// What runs collectives beside NCCL's own algorithms.
    #[derive(Default)]
    Runtime, "runtime", {
        /// Nothing: stock NCCL.
        #[default]
        Stock = 0 => "stock",
        /// One that runs schedules in MSCCL's form.
        Msccl = 1 => "msccl",
    }
}

/// How many channels to ask NCCL for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelChoice(u8);

impl ChannelChoice {
    /// NCCL's own count.
    pub const OWN: ChannelChoice = ChannelChoice(0);
    /// The counts that can be asked for; 0 is NCCL's own.
    pub const VALUES: [u8; 10] = [0, 1, 2, 4, 8, 12, 16, 24, 32, 64];

    /// The choice that asks for this many, if it is one of [`Self::VALUES`].
    pub fn of(channels: u8) -> Option<Self> {
        Self::VALUES.contains(&channels).then_some(ChannelChoice(channels))
    }

    /// The number asked for, or nothing for NCCL's own.
    pub fn requested(self) -> Option<u32> {
        (self.0 > 0).then_some(u32::from(self.0))
    }

    /// All choices.
    pub fn all() -> impl Iterator<Item = ChannelChoice> {
        Self::VALUES.into_iter().map(ChannelChoice)
    }
}

/// The chunk size relative to NCCL's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkChoice {
    /// NCCL's own.
    #[default]
    Own,
    /// A quarter of it.
    Quarter,
    /// Half of it.
    Half,
    /// Twice it.
    Double,
    /// Four times it.
    Quadruple,
}

impl ChunkChoice {
    /// All choices, NCCL's own first.
    pub const ALL: [ChunkChoice; 5] = [
        ChunkChoice::Own,
        ChunkChoice::Quarter,
        ChunkChoice::Half,
        ChunkChoice::Double,
        ChunkChoice::Quadruple,
    ];

    /// Its name in files and logs.
    pub const fn name(self) -> &'static str {
        match self {
            ChunkChoice::Own => "own",
            ChunkChoice::Quarter => "quarter",
            ChunkChoice::Half => "half",
            ChunkChoice::Double => "double",
            ChunkChoice::Quadruple => "quadruple",
        }
    }

    /// The chunk that results from NCCL's `own` of a pair, before NCCL's ceiling and grain apply. That of NVLS never
    /// grows: its buffers are cut for NCCL's own, and NCCL checks against larger ones.
    pub fn apply(self, own: u64, pair: Pair) -> u64 {
        let chunk = match self {
            ChunkChoice::Own => own,
            ChunkChoice::Quarter => own / 4,
            ChunkChoice::Half => own / 2,
            ChunkChoice::Double => own * 2,
            ChunkChoice::Quadruple => own * 4,
        };
        let most =
            if matches!(pair.algorithm, Algorithm::Nvls | Algorithm::NvlsTree) { own } else { u64::MAX };
        chunk.max(own.min(least_chunk(pair.protocol))).min(most)
    }
}

/// The smallest chunk that is asked for. In LL128 trees NCCL halves its own by the size of the call, down to this;
/// whoever does not know how far it has gone must not go on.
const fn least_chunk(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::LL128 => 18_000,
        Protocol::LL | Protocol::Simple => 0,
    }
}

impl std::str::FromStr for ChunkChoice {
    type Err = UnknownWord;

    fn from_str(s: &str) -> Result<Self, UnknownWord> {
        look_up("chunk size", s, &ChunkChoice::ALL.map(|choice| (choice.name(), choice)))
    }
}

/// Threads per block. No plugin API sets it per call: it is decided once per process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadChoice(u16);

impl ThreadChoice {
    /// NCCL's own count.
    pub const OWN: ThreadChoice = ThreadChoice(0);
    /// The counts that can be asked for; 0 is NCCL's own.
    pub const VALUES: [u16; 5] = [0, 64, 128, 256, 512];

    /// The choice that asks for this many, if it is one of [`Self::VALUES`].
    pub fn of(threads: u16) -> Option<Self> {
        Self::VALUES.contains(&threads).then_some(ThreadChoice(threads))
    }

    /// The number asked for, or nothing for NCCL's own.
    pub fn requested(self) -> Option<u32> {
        (self.0 > 0).then_some(u32::from(self.0))
    }

    /// All choices.
    pub fn all() -> impl Iterator<Item = ThreadChoice> {
        Self::VALUES.into_iter().map(ThreadChoice)
    }
}

/// One setting of every knob. The default is NCCL's own everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Knobs {
    /// Who carries the call.
    pub path: Path,
    /// Algorithm and protocol; none is NCCL's own.
    pub pair: Option<Pair>,
    /// Channels to ask for.
    pub channels: ChannelChoice,
    /// Chunk size.
    pub chunk: ChunkChoice,
    /// Threads per block.
    pub threads: ThreadChoice,
}

impl Knobs {
    /// NCCL's own everywhere.
    pub const OWN: Knobs = Knobs {
        path: Path::Nccl,
        pair: None,
        channels: ChannelChoice::OWN,
        chunk: ChunkChoice::Own,
        threads: ThreadChoice::OWN,
    };

    /// A pair and a number of channels, NCCL's own otherwise.
    pub const fn with_pair(pair: Pair, channels: ChannelChoice) -> Self {
        Knobs { pair: Some(pair), channels, ..Knobs::OWN }
    }
}

impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pair {
            Some(pair) => write!(f, "{pair}")?,
            None => write!(f, "own")?,
        }
        if let Some(channels) = self.channels.requested() {
            write!(f, " {channels}ch")?;
        }
        if self.chunk != ChunkChoice::Own {
            write!(f, " {} chunk", self.chunk.name())?;
        }
        if let Some(threads) = self.threads.requested() {
            write!(f, " {threads}thr")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_in_ll128_is_not_cut_below_nccls_least() {
        let [ll128, simple] = [Protocol::LL128, Protocol::Simple].map(|p| Pair::new(Algorithm::Tree, p));
        let half = |own| ChunkChoice::Half.apply(own, ll128);
        assert_eq!([half(72_000), half(30_000), half(18_000), half(9_000)], [36_000, 18_000, 18_000, 9_000]);
        assert_eq!(ChunkChoice::Half.apply(18_000, simple), 9_000);
    }

    #[test]
    fn own_is_the_default_and_asks_for_nothing() {
        assert_eq!(Knobs::default(), Knobs::OWN);
        assert_eq!(Knobs::OWN.channels.requested(), None);
        assert_eq!(ChunkChoice::Own.apply(512, Pair::new(Algorithm::Ring, Protocol::LL128)), 512);
        assert_eq!(Knobs::OWN.to_string(), "own");
        let channels = ChannelChoice::of(4).unwrap();
        let knobs = Knobs { channels, chunk: ChunkChoice::Half, ..Knobs::OWN };
        assert_eq!(knobs.to_string(), "own 4ch half chunk");
        assert!(ChunkChoice::ALL.iter().all(|choice| choice.name().parse() == Ok(*choice)));
    }

    #[test]
    fn only_listed_values_can_be_asked_for() {
        assert_eq!(ChannelChoice::of(12).and_then(ChannelChoice::requested), Some(12));
        assert_eq!(ChannelChoice::of(3), None);
        assert_eq!(ThreadChoice::of(96), None);
        assert_eq!(ChannelChoice::all().count(), ChannelChoice::VALUES.len());
        assert_eq!(ThreadChoice::all().count(), ThreadChoice::VALUES.len());
    }
}
