//! Where a tuner changes its mind as calls grow: ranges of sizes with one answer each.

use dynamiccl_env::asking::{Asked, Asking};
use dynamiccl_spec::{Collective, Head, Pair, Path, ThreadChoice, Tuner};

/// Sizes that are looked at: 1 KiB to 16 GiB.
const OCTAVES: std::ops::Range<u32> = 10..34;
/// Sizes that are looked at in each octave, evenly apart. Between two of them that get the same answer
/// no other is looked for.
const STEPS: u64 = 16;

/// Sizes with one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The smallest size.
    pub min: u64,
    /// The largest; `u64::MAX` where there is none.
    pub max: u64,
    /// What they get.
    pub launch: Launch,
}

/// What a call gets, as far as a table can say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Algorithm and protocol.
    pub pair: Pair,
    /// The most channels that it may use.
    pub channels: u32,
}

/// What a tuner answers for a collective.
#[derive(Debug, Default)]
pub struct Answers {
    /// By size; nothing where NCCL has no choice to offer.
    pub ranges: Vec<Range>,
    /// Whether it also wants threads or a path of its own somewhere, which a table cannot say.
    pub more: bool,
}

/// The answers of a tuner for a collective.
pub fn of(tuner: &mut dyn Tuner, asking: &Asking, collective: Collective) -> Answers {
    let mut more = false;
    let ranges = between(&mut |bytes| {
        let mut asked = asking.call(collective, bytes, 1);
        // Nor can a table say a chunk or threads, and a pair that only wins with them would lose.
        asked.gated.mask = asked.gated.mask.only(Head::Chunk, 0);
        // A table is written before anything can be measured.
        let mut decide = |asked: &Asked| tuner.decide(&asking.query(asked), &mut |_| None).knobs;
        more |= decide(&asked).threads != ThreadChoice::OWN;
        asked.gated.mask = asked.gated.mask.only(Head::Threads, 0);
        let knobs = decide(&asked);
        more |= knobs.path != Path::Nccl;
        let realised = asking.realise(&asked, &knobs)?;
        Some(Launch { pair: realised.pair, channels: realised.max_channels })
    });
    Answers { ranges, more }
}

fn between(answer: &mut dyn FnMut(u64) -> Option<Launch>) -> Vec<Range> {
    let steps =
        OCTAVES.flat_map(|octave| (0..STEPS).map(move |step| (1_u64 << octave) / STEPS * (STEPS + step)));
    let mut changes = Vec::new();
    let mut last = None;
    for bytes in steps.chain([1 << OCTAVES.end]) {
        let here = answer(bytes);
        match last {
            Some((before, there)) => find_changes([before, bytes], [there, here], answer, &mut changes),
            // The first answer also holds below the first size.
            None => changes.push((0, here)),
        }
        last = Some((bytes, here));
    }
    let ends = changes.iter().skip(1).map(|(start, _)| start - 1).chain([u64::MAX]);
    let ranges = changes.iter().zip(ends);
    ranges.filter_map(|(&(min, launch), max)| Some(Range { min, max, launch: launch? })).collect()
}

/// Adds every size at which the answer becomes another one, between two sizes whose answers are known.
fn find_changes(
    [low, high]: [u64; 2],
    [at_low, at_high]: [Option<Launch>; 2],
    answer: &mut dyn FnMut(u64) -> Option<Launch>,
    changes: &mut Vec<(u64, Option<Launch>)>,
) {
    if at_low == at_high {
        return;
    }
    if high - low == 1 {
        changes.push((high, at_high));
        return;
    }
    let middle = low + (high - low) / 2;
    let at_middle = answer(middle);
    find_changes([low, middle], [at_low, at_middle], answer, changes);
    find_changes([middle, high], [at_middle, at_high], answer, changes);
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Algorithm, Protocol};

    use super::*;

    fn with(channels: u32) -> Option<Launch> {
        Some(Launch { pair: Pair::new(Algorithm::Ring, Protocol::LL), channels })
    }

    #[test]
    fn every_change_is_found_to_the_byte() {
        let changes = [5_000, 5_100, 70_001, 70_002, 8 << 30];
        let answer = |bytes: u64| changes.iter().filter(|&&change| bytes >= change).count() as u32;
        let ranges = between(&mut |bytes| with(answer(bytes)));
        let found: Vec<u64> = ranges.iter().map(|range| range.min).collect();
        assert_eq!(found, [0, 5_000, 5_100, 70_001, 70_002, 8 << 30]);
        assert!(ranges.windows(2).all(|pair| pair[0].max + 1 == pair[1].min));
        assert_eq!(ranges.last().map(|range| range.max), Some(u64::MAX));
    }

    #[test]
    fn sizes_without_an_answer_get_no_range() {
        let ranges = between(&mut |bytes| with(1).filter(|_| !(1 << 20..1 << 21).contains(&bytes)));
        let found: Vec<[u64; 2]> = ranges.iter().map(|range| [range.min, range.max]).collect();
        assert_eq!(found, [[0, (1 << 20) - 1], [1 << 21, u64::MAX]]);
        assert!(between(&mut |_| None).is_empty());
    }
}
