//! Random numbers for worlds: the few distributions they need, over a generator whose bits are fixed.

use dynamiccl_spec::math::{exp, ln};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// What a stream of random numbers is for; streams of one seed are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Hidden constants.
    Constants = 0,
    /// What the model does not know.
    Field = 1,
    /// What changes from call to call.
    Weather = 2,
}

/// The generator of one stream of a seed.
pub fn generator(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream as u64);
    rng
}

/// Between 0 and 1.
pub fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    rng.random::<f64>()
}

/// A factor between `low` and `high`, each octave as likely as the next.
pub fn log_uniform(rng: &mut ChaCha8Rng, [low, high]: [f64; 2]) -> f64 {
    let draw = uniform(rng);
    if low >= high { low } else { exp(ln(low) + (ln(high) - ln(low)) * draw) }
}

/// Mean 0, variance 1. The polar method, because its logarithm is ours and therefore the same bits.
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(rng) - 1.0, 2.0 * uniform(rng) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * ln(square) / square).sqrt();
        }
    }
}

/// Waiting time with this mean.
pub fn exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -ln(1.0 - uniform(rng)) * mean
}
