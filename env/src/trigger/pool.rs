//! Room for the kinds of call of one environment: fixed at the start, found in one step.
//!
//! Jobs make calls of some dozen kinds out of hundreds that could be, so kinds take a place when they
//! first come. Where a job has more kinds than places, the one that came first makes room.

use dynamiccl_spec::Collective;

use super::key::{Key, OCTAVES};
use super::kind::Kind;

/// Kinds of call per communicator that are remembered at the same time.
const KINDS: usize = 32;
/// A kind without a place.
const NONE: u16 = u16::MAX;

/// The kinds of all communicators.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The place of each kind.
    places: Box<[u16]>,
    /// The models, and whose they are.
    kinds: Box<[(u32, Kind)]>,
    /// The place that is given away next.
    next: usize,
    /// Places that were given away.
    taken: usize,
}

impl Pool {
    /// Room for this many communicators.
    pub fn new(communicators: usize) -> Self {
        let room = (communicators * KINDS).clamp(1, usize::from(NONE));
        Pool {
            places: vec![NONE; communicators * Collective::ALL.len() * OCTAVES].into(),
            kinds: vec![(0, Kind::new(0.0)); room].into(),
            next: 0,
            taken: 0,
        }
    }

    /// Forgets all kinds.
    pub fn clear(&mut self) {
        for (slot, _) in &self.kinds[..self.taken] {
            self.places[*slot as usize] = NONE;
        }
        (self.next, self.taken) = (0, 0);
    }

    /// The model of a kind; a new one starts with this variance.
    pub fn kind(&mut self, key: Key, variance: impl FnOnce() -> f64) -> &mut Kind {
        let slot = key.slot();
        if self.places[slot] == NONE {
            self.give(slot, Kind::new(variance()));
        }
        &mut self.kinds[usize::from(self.places[slot])].1
    }

    fn give(&mut self, slot: usize, kind: Kind) {
        let place = self.next;
        if self.taken == self.kinds.len() {
            self.places[self.kinds[place].0 as usize] = NONE;
        } else {
            self.taken += 1;
        }
        self.kinds[place] = (slot as u32, kind);
        self.places[slot] = place as u16;
        self.next = (place + 1) % self.kinds.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(octave: u32) -> Key {
        let collective = Collective::ALL[octave as usize / OCTAVES];
        Key::new(0, collective, 1 << (octave as usize % OCTAVES))
    }

    #[test]
    fn a_kind_is_kept_until_later_ones_need_its_place() {
        let mut pool = Pool::new(1);
        (0..KINDS as u32).for_each(|i| _ = pool.kind(key(i), || f64::from(i)));
        let variance = |pool: &mut Pool, i| pool.kind(key(i), || -1.0).variance();
        assert_eq!(variance(&mut pool, 5), 5.0);
        pool.kind(key(KINDS as u32), || 99.0);
        assert_eq!(variance(&mut pool, 1), 1.0);
        assert_eq!(variance(&mut pool, 0), -1.0, "the first made room");
        assert_eq!(variance(&mut pool, 1), -1.0, "and took the second's place when it came back");
    }

    #[test]
    fn clearing_forgets_every_kind() {
        let mut pool = Pool::new(2);
        (0..200).for_each(|i| _ = pool.kind(key(i), || 1.0));
        pool.clear();
        assert!(pool.places.iter().all(|&place| place == NONE));
        assert_eq!(pool.kind(key(199), || 7.0).variance(), 7.0);
    }
}
