//! Answers that were worked out before, for many threads at once and without a lock.
//!
//! A job asks the same question over and over, from whichever of its threads, and may never wait for another
//! of them. Entries are read as they are and then checked: one that was written meanwhile counts as not
//! there, and whoever does not find an answer works it out again. So this may only hold answers that are a
//! pure function of their key. Room is taken once. What a key or an answer means is not its business.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize, fence};

/// Places side by side in which a key may be, and as many elsewhere: those are looked at only where the first
/// are all taken.
const WINDOW: usize = 8;
/// Words of a key that lie in one line of a cache with the version and the answer.
const NEAR: usize = 6;

/// Answers by keys of this many words.
#[derive(Debug)]
pub struct SharedMemo<const WORDS: usize> {
    /// As many as a power of two.
    entries: Box<[Entry<WORDS>]>,
    /// Counts the keys that found all their places taken.
    pushed: AtomicUsize,
}

/// Begins where lines of a cache do, and mostly the first one that is looked at is the right one.
#[derive(Debug)]
#[repr(C, align(128))]
struct Entry<const WORDS: usize> {
    /// Odd while somebody writes; 0 where nobody ever did.
    version: AtomicU64,
    answer: AtomicU64,
    key: [AtomicU64; WORDS],
}

impl<const WORDS: usize> SharedMemo<WORDS> {
    /// Room for this many answers, filled up to a power of two and at least 8.
    pub fn new(answers: usize) -> Self {
        let entries = answers.max(WINDOW).next_power_of_two();
        SharedMemo { entries: (0..entries).map(|_| Entry::new()).collect(), pushed: AtomicUsize::new(0) }
    }

    /// The answer under this key, if it is here.
    #[inline]
    pub fn get(&self, key: &[u64; WORDS]) -> Option<u64> {
        for entry in self.places(key) {
            match entry.read(key) {
                Read::Answer(answer) => return Some(answer),
                // Places are filled in their order and never emptied.
                Read::Empty => return None,
                Read::Other => {}
            }
        }
        None
    }

    /// Keeps an answer, in the place of another where there is no more room; or does not, where another
    /// thread writes at the same place.
    pub fn put(&self, key: &[u64; WORDS], answer: u64) {
        let empty = self.places(key).find(|entry| entry.version.load(Relaxed) == 0);
        let pushed = || self.places(key).nth(self.pushed.fetch_add(1, Relaxed) % (2 * WINDOW));
        let place = empty.or_else(pushed);
        if let Some(place) = place {
            place.write(key, answer);
        }
    }

    #[inline]
    fn places(&self, key: &[u64; WORDS]) -> impl Iterator<Item = &Entry<WORDS>> {
        let (hash, last) = (hash(key), self.entries.len() - 1);
        let window = move |home: u64| (0..WINDOW).map(move |at| &self.entries[(home as usize + at) & last]);
        window(hash & u64::from(u32::MAX)).chain(window(hash >> 32))
    }
}

/// What is found at a place.
enum Read {
    Answer(u64),
    Other,
    Empty,
}

impl<const WORDS: usize> Entry<WORDS> {
    fn new() -> Self {
        let key = std::array::from_fn(|_| AtomicU64::new(0));
        Entry { version: AtomicU64::new(0), answer: AtomicU64::new(0), key }
    }

    /// The answer, if this is the key and nobody wrote meanwhile.
    #[inline]
    fn read(&self, key: &[u64; WORDS]) -> Read {
        let version = self.version.load(Acquire);
        if version == 0 {
            return Read::Empty;
        }
        // Two steps and not one for every word: mostly they are the same, or differ early.
        let differing = |words: std::ops::Range<usize>| {
            words.fold(0, |all, at| all | (self.key[at].load(Relaxed) ^ key[at]))
        };
        if differing(0..NEAR.min(WORDS)) != 0 {
            return Read::Other;
        }
        let differing = differing(NEAR.min(WORDS)..WORDS);
        let answer = self.answer.load(Relaxed);
        // What was read above is read before the version is looked at again.
        fence(Acquire);
        let whole = version & 1 == 0 && self.version.load(Relaxed) == version;
        if whole && differing == 0 { Read::Answer(answer) } else { Read::Other }
    }

    /// Writes both, unless another thread is at it.
    fn write(&self, key: &[u64; WORDS], answer: u64) {
        let version = self.version.load(Relaxed);
        let begin = || self.version.compare_exchange(version, version + 1, Acquire, Relaxed);
        if version & 1 == 1 || begin().is_err() {
            return;
        }
        // Nobody sees a word of what follows without seeing the odd version.
        fence(Release);
        self.key.iter().zip(key).for_each(|(word, new)| word.store(*new, Relaxed));
        self.answer.store(answer, Relaxed);
        self.version.store(version + 2, Release);
    }
}

/// Says where to look. Four lanes, because each step of one waits for the step before.
#[inline]
fn hash(key: &[u64]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1_u64, 2, 3, 4];
    for (at, word) in key.iter().enumerate() {
        let mixed = (lanes[at % 4] ^ word).wrapping_mul(ODD);
        lanes[at % 4] = mixed ^ mixed >> 29;
    }
    let [a, b, c, d] = lanes;
    let all = (a ^ b.rotate_left(16) ^ c.rotate_left(32) ^ d.rotate_left(48)).wrapping_mul(ODD);
    all ^ all >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: usize = 13;

    fn key(seed: u64) -> [u64; WORDS] {
        std::array::from_fn(|at| seed.wrapping_mul(at as u64 + 1))
    }

    #[test]
    fn it_finds_what_was_put_and_only_under_the_same_key() {
        let memo = SharedMemo::new(16);
        memo.put(&key(7), 70);
        assert_eq!((memo.get(&key(7)), memo.get(&key(8))), (Some(70), None));
        for word in 0..WORDS {
            let mut other = key(7);
            other[word] ^= 1 << 63;
            assert_eq!(memo.get(&other), None, "word {word}");
        }
        assert_eq!(SharedMemo::new(16).get(&[0; WORDS]), None, "what is empty answers nothing");
    }

    #[test]
    fn old_answers_make_room_for_new_ones() {
        let memo = SharedMemo::new(64);
        for seed in 0..10_000 {
            memo.put(&key(seed), seed);
            assert_eq!(memo.get(&key(seed)), Some(seed));
        }
        let kept = (0..10_000).filter(|&seed| memo.get(&key(seed)).is_some()).count();
        assert!((48..=64).contains(&kept), "{kept}");
    }

    /// Threads that overwrite each other's few places all the time never read what is not so.
    #[test]
    fn no_thread_reads_half_an_entry() {
        let memo = SharedMemo::new(8);
        let work = |thread: u64| {
            let mut found = 0;
            for call in 0..200_000_u64 {
                let seed = (call * 7 + thread) % 40;
                match memo.get(&key(seed)) {
                    Some(answer) => {
                        assert_eq!(answer, seed ^ 5);
                        found += 1;
                    }
                    None => memo.put(&key(seed), seed ^ 5),
                }
            }
            found
        };
        let found = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        });
        assert!(found > 0);
    }
}
