//! Decisions that were made before, under everything that they depend on.
//!
//! A decision is a pure function of the job, the call, NCCL's table and what may be chosen, as long as
//! what is remembered of past calls stays the same. Jobs make the same calls over and over, so most
//! are answered from here. Keys are compared whole: a hash only says where to look. Room is taken once.

use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{CostTable, Decision, Knobs, Query, Reason};

/// Places in which a key may be.
const WAYS: usize = 8;

/// Decisions by what they depend on.
#[derive(Debug, Clone)]
pub struct Memo {
    /// Part of the hashes of the keys that are there, set by set, 0 where there is none: a look at one line
    /// of a cache says which places are worth a closer look. As many sets as a power of two.
    tags: Vec<[u32; WAYS]>,
    entries: Vec<[Entry; WAYS]>,
    /// The place in its set that the next new decision takes where all are taken.
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    decision: Decision,
}

/// All that a decision depends on but for what is remembered of past calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    job: u64,
    bytes: u64,
    words: [u32; WORDS],
}

/// The table, the mask, and four for the rest.
const WORDS: usize = PAIRS + HEADS + 4;

impl Memo {
    /// Room for this many decisions, filled up to a power of two and at least 8; or for none at all.
    pub fn new(decisions: usize) -> Self {
        let (knobs, micros) = (Knobs::OWN, CostTable::default());
        let decision = Decision { knobs, reason: Reason::Policy, micros, spread: None, exploratory: false };
        let key = Key { job: 0, bytes: 0, words: [0; WORDS] };
        let sets = if decisions == 0 { 0 } else { decisions.div_ceil(WAYS).next_power_of_two() };
        let entries = vec![[Entry { key, decision }; WAYS]; sets];
        Memo { tags: vec![[0; WAYS]; sets], entries, next: 0 }
    }

    /// What was decided under this key.
    #[inline]
    pub fn get(&self, key: &Key) -> Option<&Decision> {
        let Place { set, tag } = self.place(key)?;
        let alike = alike(&self.tags[set], tag);
        let mut places = (0..WAYS).filter(|way| alike >> way & 1 == 1);
        let entry = |way: usize| &self.entries[set][way];
        places.find(|&way| entry(way).key.same(key)).map(|way| &entry(way).decision)
    }

    /// Keeps a decision, in the place of another where there is no more room.
    pub fn put(&mut self, key: &Key, decision: &Decision) {
        let Some(Place { set, tag }) = self.place(key) else { return };
        let free = alike(&self.tags[set], 0);
        let way = if free == 0 { self.next } else { free.trailing_zeros() as usize };
        self.next = (self.next + 1) % WAYS;
        self.tags[set][way] = tag;
        self.entries[set][way] = Entry { key: *key, decision: *decision };
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.tags.fill([0; WAYS]);
    }

    #[inline]
    fn place(&self, key: &Key) -> Option<Place> {
        let (hash, last) = (key.hash(), self.tags.len().checked_sub(1)?);
        Some(Place { set: hash as usize & last, tag: (hash >> 32) as u32 | 1 })
    }
}

/// Where a key may be.
struct Place {
    set: usize,
    tag: u32,
}

/// The places of a set that have this tag, as bits.
#[inline]
fn alike(tags: &[u32; WAYS], tag: u32) -> u32 {
    tags.iter().enumerate().fold(0, |alike, (way, &there)| alike | u32::from(there == tag) << way)
}

impl Key {
    /// The key of a query, where the job on its communicator has this number.
    #[inline]
    pub fn new(query: &Query<'_>, job: u64) -> Self {
        let (call, gated) = (query.call, query.gated);
        let mut words = [0; WORDS];
        let (table, rest) = words.split_at_mut(PAIRS);
        table.iter_mut().zip(call.table.0.as_flattened()).for_each(|(word, us)| *word = us.to_bits());
        let (mask, rest) = rest.split_at_mut(HEADS);
        mask.copy_from_slice(&gated.mask.all_bits());
        let own = gated.own.map_or(u8::MAX, |pair| pair.index() as u8);
        let bytes = [call.collective as u8, own, gated.fired.bits(), 0];
        let schedule = call.synthesised.map_or(u32::MAX, f32::to_bits);
        rest.copy_from_slice(&[call.pairs.bits(), call.pipelined, u32::from_le_bytes(bytes), schedule]);
        Key { job, bytes: call.bytes, words }
    }

    /// Says where to look, and nothing more.
    #[inline]
    fn hash(&self) -> u64 {
        let words = self.words.iter().fold(0, |all, word| all ^ word);
        let mixed = (self.bytes ^ u64::from(words) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.job;
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    }

    #[inline]
    fn same(&self, other: &Key) -> bool {
        // Without an early end: this is faster, and almost always they are the same.
        let differing = self.words.iter().zip(&other.words).fold(0, |all, (a, b)| all | (a ^ b));
        (self.job, self.bytes, differing) == (other.job, other.bytes, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(job: u64, bytes: u64) -> Key {
        Key { job, bytes, words: std::array::from_fn(|at| at as u32) }
    }

    fn decision(micros: f32) -> Decision {
        let micros = CostTable([[micros; 3]; 7]);
        Decision { knobs: Knobs::OWN, reason: Reason::Policy, micros, spread: None, exploratory: false }
    }

    #[test]
    fn it_finds_what_was_put_and_only_under_the_same_key() {
        let mut memo = Memo::new(16);
        memo.put(&key(1, 8), &decision(1.0));
        assert_eq!(memo.get(&key(1, 8)), Some(&decision(1.0)));
        assert_eq!((memo.get(&key(2, 8)), memo.get(&key(1, 9))), (None, None));
        for word in 0..WORDS {
            let mut other = key(1, 8);
            other.words[word] ^= 1 << 31;
            assert_eq!(memo.get(&other), None, "word {word}");
        }
        memo.clear();
        assert_eq!(memo.get(&key(1, 8)), None);
    }

    #[test]
    fn keys_that_hash_alike_are_told_apart() {
        // Swapped words leave the hash as it is.
        let (mut memo, mut swapped) = (Memo::new(1), key(1, 8));
        swapped.words.swap(3, 4);
        assert_eq!(swapped.hash(), key(1, 8).hash());
        memo.put(&key(1, 8), &decision(1.0));
        assert_eq!(memo.get(&swapped), None);
        memo.put(&swapped, &decision(2.0));
        assert_eq!(memo.get(&key(1, 8)), Some(&decision(1.0)));
        assert_eq!(memo.get(&swapped), Some(&decision(2.0)));
    }

    #[test]
    fn old_decisions_make_room_for_new_ones() {
        let mut memo = Memo::new(64);
        for bytes in 0..10_000 {
            memo.put(&key(1, bytes), &decision(bytes as f32));
            assert_eq!(memo.get(&key(1, bytes)), Some(&decision(bytes as f32)));
        }
        let kept = (0..10_000).filter(|&bytes| memo.get(&key(1, bytes)).is_some()).count();
        assert_eq!(kept, 64);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut memo = Memo::new(0);
        memo.put(&key(1, 8), &decision(1.0));
        assert_eq!(memo.get(&key(1, 8)), None);
    }
}
