//! A point in a stream of episodes, small enough to be written down: what follows it is always the same.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

/// A point in a stream of random numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    seed: [u8; 32],
    /// Words drawn so far, as upper and lower half.
    drawn: [u64; 2],
}

impl Stream {
    /// Where a generator stands.
    pub fn of(rng: &ChaCha8Rng) -> Self {
        let drawn = rng.get_word_pos();
        Stream { seed: rng.get_seed(), drawn: [(drawn >> 64) as u64, drawn as u64] }
    }

    /// A generator that stands there.
    pub fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.seed);
        rng.set_word_pos(u128::from(self.drawn[0]) << 64 | u128::from(self.drawn[1]));
        rng
    }
}
