//! What is done to a call: nothing, or an entry that wins, channels and a chunk size. It fits into one word,
//! so that it can be kept and read without a lock.

use std::fmt;

use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Algorithm, ChunkChoice, Knobs, Pair};

use super::call::RawTable;
use super::price::price;

/// NCCL's limit (MAXCHANNELS).
const CHANNELS: u32 = 64;

/// What is done to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer(u64);

impl Answer {
    /// Nothing: NCCL does as it would by itself.
    pub const OWN: Answer = Answer(0);

    /// Hands over these knobs on a communicator of so many nodes, if they can be made to win NCCL's
    /// table; `micros` is what the chosen pair is believed to take.
    pub fn new(knobs: &Knobs, micros: f32, table: &RawTable, nodes: u32) -> Self {
        let Some(pair) = knobs.pair else { return Answer::OWN };
        let channels = channels(knobs, pair, nodes);
        let nothing_else = channels == 0 && knobs.chunk == ChunkChoice::Own;
        if nothing_else && table.known.best().is_some_and(|(best, us)| best == pair && us < table.beyond) {
            return Answer::OWN;
        }
        let Some(micros) = price(table, pair, micros) else { return Answer::OWN };
        let chunk = ChunkChoice::ALL.iter().position(|&chunk| chunk == knobs.chunk).unwrap_or(0);
        let pair = 1 + pair.index() as u64;
        Answer(u64::from(micros.to_bits()) | pair << 32 | u64::from(channels) << 40 | (chunk as u64) << 48)
    }

    /// As one word.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From one word.
    #[inline]
    pub fn of_bits(bits: u64) -> Self {
        Answer(bits)
    }

    /// The index of the pair whose entry is written, and what.
    #[inline]
    pub fn entry(self) -> Option<(usize, f32)> {
        let pair = (self.0 >> 32 & 0xff) as usize;
        (1..=PAIRS).contains(&pair).then(|| (pair - 1, f32::from_bits(self.0 as u32)))
    }

    /// Channels to ask for; none for NCCL's own count.
    #[inline]
    pub fn channels(self) -> Option<i32> {
        let channels = (self.0 >> 40 & 0xff) as i32;
        (channels > 0).then_some(channels)
    }

    /// The chunk size.
    #[inline]
    pub fn chunk(self) -> ChunkChoice {
        ChunkChoice::ALL.get((self.0 >> 48 & 0xff) as usize).copied().unwrap_or_default()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((pair, micros)) = self.entry() else { return f.write_str("own") };
        let pair = Pair::from_index(pair).map(|pair| pair.to_string()).unwrap_or_default();
        let channels = self.channels().map_or("own".to_owned(), |channels| channels.to_string());
        write!(f, "{pair}, {channels} channels, {} chunk, {micros} us", self.chunk().name())
    }
}

/// Channels that may be asked for, 0 for NCCL's own count. Where the network adds, NCCL uses the number as it
/// is, and nobody tells a tuner how many channels there are.
fn channels(knobs: &Knobs, pair: Pair, nodes: u32) -> u32 {
    let unchecked = match pair.algorithm {
        Algorithm::CollnetDirect | Algorithm::CollnetChain => true,
        Algorithm::Nvls => nodes > 1,
        _ => false,
    };
    knobs.channels.requested().filter(|_| !unchecked).map_or(0, |channels| channels.clamp(1, CHANNELS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::{ChannelChoice, CostTable, Protocol};

    fn table() -> RawTable {
        let mut known = CostTable::default();
        Pair::all().for_each(|pair| known.set(pair, 10.0 + pair.index() as f32));
        RawTable { known, beyond: f32::INFINITY }
    }

    #[test]
    fn every_setting_survives_the_word() {
        for pair in Pair::all().skip(1) {
            for channels in ChannelChoice::all() {
                for chunk in ChunkChoice::ALL {
                    let knobs = Knobs { chunk, ..Knobs::with_pair(pair, channels) };
                    let answer = Answer::of_bits(Answer::new(&knobs, 1.5, &table(), 1).bits());
                    assert_eq!(answer.entry(), Some((pair.index(), 1.5)));
                    assert_eq!(answer.chunk(), chunk);
                    let raw = !matches!(pair.algorithm, Algorithm::CollnetDirect | Algorithm::CollnetChain);
                    let expected = channels.requested().filter(|_| raw).map(|n| n as i32);
                    assert_eq!(answer.channels(), expected, "{knobs}");
                }
            }
        }
    }

    #[test]
    fn what_nccl_would_do_by_itself_is_left_to_it() {
        let best = Pair::new(Algorithm::Tree, Protocol::LL);
        let own = Knobs::with_pair(best, ChannelChoice::OWN);
        assert_eq!(Answer::new(&own, 3.0, &table(), 1), Answer::OWN);
        assert_eq!(Answer::new(&Knobs::OWN, 3.0, &table(), 1), Answer::OWN);
        assert_eq!((Answer::OWN.entry(), Answer::OWN.channels()), (None, None));
        let wide = Knobs::with_pair(best, ChannelChoice::of(8).unwrap());
        assert_eq!(Answer::new(&wide, 3.0, &table(), 1).entry(), Some((0, 3.0)));
    }

    #[test]
    fn channels_stay_nccls_where_it_would_not_check_them() {
        let knobs = |algorithm| {
            Knobs::with_pair(Pair::new(algorithm, Protocol::Simple), ChannelChoice::of(64).unwrap())
        };
        let asked = |algorithm, nodes| Answer::new(&knobs(algorithm), 1.0, &table(), nodes).channels();
        assert_eq!([1, 2].map(|nodes| asked(Algorithm::Nvls, nodes)), [Some(64), None]);
        assert_eq!([1, 2].map(|nodes| asked(Algorithm::CollnetChain, nodes)), [None, None]);
        assert_eq!([1, 2].map(|nodes| asked(Algorithm::NvlsTree, nodes)), [Some(64), Some(64)]);
    }
}
