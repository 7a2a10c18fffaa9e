//! Randomness that is the same bits on every machine and costs nothing to carry into a job: SplitMix64.
//!
//! Searches and bandits draw from it, so a seed replays a whole search. It is no source of secrets.

use dynamiccl_spec::math::ln;

/// A stream of numbers that its seed decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The stream of one of many things that share a seed, unlike those of the others.
    pub const fn of(seed: u64, which: u64) -> Self {
        let mut of_seed = Random::new(seed);
        Random::new(of_seed.bits() ^ mix(which))
    }

    /// Where the stream stands: a stream of this seed goes on from here.
    pub const fn state(&self) -> u64 {
        self.state
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform below `count`, which must not be 0.
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        // The high half of a product: without division, and off by less than count / 2^64.
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        // Marsaglia's polar form: of the two that a pair gives one is let go, so that nothing is kept.
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_stream() {
        let mut random = Random::new(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.bits()), first);
    }

    #[test]
    fn moments_are_those_of_the_names() {
        let mut random = Random::new(7);
        let count = 100_000;
        let (mut uniform, mut mean, mut square) = (0.0, 0.0, 0.0);
        let mut faces = [0_u32; 6];
        for _ in 0..count {
            uniform += random.uniform();
            let x = random.normal();
            mean += x;
            square += x * x;
            faces[random.below(6)] += 1;
        }
        let count = f64::from(count);
        assert!((uniform / count - 0.5).abs() < 0.005);
        assert!((mean / count).abs() < 0.015 && (square / count - 1.0).abs() < 0.02);
        assert!(faces.iter().all(|&n| (f64::from(n) / count - 1.0 / 6.0).abs() < 0.005), "{faces:?}");
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let first = |which| Random::of(3, which).bits();
        assert!((1..100).all(|which| first(which) != first(0)));
        assert_ne!(Random::of(3, 1).bits(), Random::of(4, 1).bits());
    }
}
