//! Finished records on their way to the thread that writes them: bounded, without a lock.
//!
//! Any thread may push, one thread pops. A full ring refuses, and whoever pushed counts what was lost: a
//! job never waits for a disk. All of it is atomic words that begin as zero, so the ring is memory that the
//! loader maps and takes back, and nothing in it needs `unsafe`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bounded queue of `N` entries of `W` words. `N` is a power of two.
pub struct Ring<const N: usize, const W: usize> {
    head: AtomicU64,
    tail: AtomicU64,
    cells: [Cell<W>; N],
}

/// An entry, and whose turn it is: 2 × lap to be filled, 2 × lap + 1 to be emptied.
struct Cell<const W: usize> {
    turn: AtomicU64,
    words: [AtomicU64; W],
}

impl<const N: usize, const W: usize> Ring<N, W> {
    /// An empty ring.
    pub const fn new() -> Self {
        assert!(N.is_power_of_two());
        Ring {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            cells: [const { Cell { turn: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; W] } }; N],
        }
    }

    fn cell(&self, position: u64) -> (&Cell<W>, u64) {
        (&self.cells[position as usize % N], position / N as u64 * 2)
    }

    /// Adds an entry; `false` where the ring is full.
    pub fn push(&self, words: [u64; W]) -> bool {
        let mut position = self.head.load(Ordering::Relaxed);
        loop {
            let (cell, empty) = self.cell(position);
            let turn = cell.turn.load(Ordering::Acquire);
            if turn < empty {
                return false;
            }
            if turn == empty {
                let next = position + 1;
                match self.head.compare_exchange_weak(position, next, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        for (place, word) in cell.words.iter().zip(words) {
                            place.store(word, Ordering::Relaxed);
                        }
                        cell.turn.store(empty + 1, Ordering::Release);
                        return true;
                    }
                    Err(moved) => position = moved,
                }
            } else {
                position = self.head.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the oldest entry. Only one thread at a time may do so.
    pub fn pop(&self) -> Option<[u64; W]> {
        let position = self.tail.load(Ordering::Relaxed);
        let (cell, empty) = self.cell(position);
        if cell.turn.load(Ordering::Acquire) != empty + 1 {
            return None;
        }
        let words = std::array::from_fn(|at| cell.words[at].load(Ordering::Relaxed));
        self.tail.store(position + 1, Ordering::Relaxed);
        cell.turn.store(empty + 2, Ordering::Release);
        Some(words)
    }

    /// Forgets everything. No other thread may be at the ring: a child of a fork has none.
    pub fn clear(&self) {
        self.cells.iter().for_each(|cell| cell.turn.store(0, Ordering::Relaxed));
        self.tail.store(0, Ordering::Relaxed);
        self.head.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_over_many_laps() {
        let ring: Ring<4, 2> = Ring::new();
        assert_eq!(ring.pop(), None);
        for lap in 0..100 {
            for k in 0..3 {
                assert!(ring.push([lap, k]));
            }
            for k in 0..3 {
                assert_eq!(ring.pop(), Some([lap, k]));
            }
            assert_eq!(ring.pop(), None);
        }
    }

    #[test]
    fn a_full_ring_refuses_and_keeps_what_it_has() {
        let ring: Ring<4, 1> = Ring::new();
        for lap in 0..3 {
            let accepted = (0..10).filter(|&k| ring.push([10 * lap + k])).count();
            assert_eq!(accepted, 4);
            let kept: Vec<[u64; 1]> = std::iter::from_fn(|| ring.pop()).collect();
            assert_eq!(kept, [0, 1, 2, 3].map(|k| [10 * lap + k]));
        }
    }

    #[test]
    fn a_cleared_ring_is_a_new_one() {
        let ring: Ring<4, 1> = Ring::new();
        (0..7).for_each(|k| {
            ring.push([k]);
            ring.pop();
        });
        assert!(ring.push([7]) && ring.push([8]));
        ring.clear();
        assert_eq!(ring.pop(), None);
        assert_eq!((0..10).filter(|&k| ring.push([k])).count(), 4);
        assert_eq!(ring.pop(), Some([0]));
    }

    #[test]
    fn nothing_is_lost_torn_or_doubled_between_threads() {
        const PUSHERS: u64 = 4;
        const EACH: u64 = 20_000;
        let ring: Ring<64, 3> = Ring::new();
        let mut seen = vec![0; PUSHERS as usize];
        let refused = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for pusher in 0..PUSHERS {
                let (ring, refused) = (&ring, &refused);
                scope.spawn(move || {
                    for k in 0..EACH {
                        while !ring.push([pusher, k, pusher ^ k]) {
                            refused.fetch_add(1, Ordering::Relaxed);
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut left = PUSHERS * EACH;
            while left > 0 {
                let Some([pusher, k, check]) = ring.pop() else {
                    std::thread::yield_now();
                    continue;
                };
                assert_eq!(check, pusher ^ k, "torn");
                assert_eq!(seen[pusher as usize], k, "out of order");
                seen[pusher as usize] += 1;
                left -= 1;
            }
        });
        assert_eq!(ring.pop(), None);
    }
}
