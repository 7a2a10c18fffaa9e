//! What kind of call a call is, for those who learn about each kind apart, and a map by it.
//!
//! A job makes few kinds of calls and makes them over and over, so finding one must cost next to nothing:
//! the hash is two multiplications.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use dynamiccl_spec::Query;

/// The kind of a call. Every rank makes the same of the same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    bytes: u64,
    /// Communicator, operations in the launch and collective.
    rest: u64,
}

impl Key {
    /// The kind of the call that is asked about.
    pub fn of(query: &Query<'_>) -> Self {
        let call = query.call;
        let launch = u64::from(call.pipelined & 0xff_ffff) << 8 | call.collective.id() as u64;
        Key { bytes: call.bytes, rest: u64::from(query.communicator) << 32 | launch }
    }

    /// A number for it, the same wherever the program runs.
    pub fn number(&self) -> u64 {
        let mut mixer = Mixer::default();
        self.hash(&mut mixer);
        mixer.finish()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.bytes);
        state.write_u64(self.rest);
    }
}

/// Something for each kind of call.
pub type ByKey<T> = HashMap<Key, T, BuildHasherDefault<Mixer>>;

/// Multiplies and folds. Keys come from our own job, so nobody aims at a collision.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_differ_in_one_thing_have_numbers_of_their_own() {
        let mut numbers = Vec::new();
        for octave in 0..40 {
            for rest in [0, 1, 4, 1 << 8, 1 << 32, 2 << 32] {
                numbers.push(Key { bytes: 1 << octave, rest }.number());
            }
        }
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
