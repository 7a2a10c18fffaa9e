//! Random numbers for worlds: the few distributions they need, over a generator whose bits are fixed.

use std::sync::LazyLock;

use dynamiccl_spec::math::{exp, ln};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// What a stream of random numbers is for; streams of one seed are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Hidden constants.
    Constants = 0,
    /// What the model does not know of networks.
    Field = 1,
    /// What changes from call to call on networks.
    Weather = 2,
    /// What the model does not know of nodes: a job has communicators inside and between them, and the times of one say
    /// nothing of what is open about the other.
    NodeField = 3,
    /// What changes from call to call inside nodes.
    NodeWeather = 4,
}

/// Where a world's random numbers come from. Worlds that are kept for evaluation read other streams of the
/// generator than all others, so that none of them is ever met in training, whatever the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The seed.
    pub seed: u64,
    /// Whether the world is kept for evaluation.
    pub kept: bool,
}

impl Origin {
    /// No stream of any other world has this bit.
    const KEPT: u64 = 1 << 63;

    fn stream(self, number: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(if self.kept { number | Self::KEPT } else { number });
        rng
    }
}

/// The generator of one stream of a world.
pub fn generator(origin: Origin, stream: Stream) -> ChaCha8Rng {
    origin.stream(stream as u64)
}

/// The generator of one part of a stream: parts can be drawn in any order.
pub fn part(origin: Origin, stream: Stream, part: usize) -> ChaCha8Rng {
    const STREAMS: u64 = 256;
    origin.stream(stream as u64 + STREAMS * (part as u64 + 1))
}

/// Between 0 and 1.
pub fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    rng.random::<f64>()
}

/// Draws factors from ranges, each octave as likely as the next. Neighbours often have the same range, whose
/// logarithms are then known.
#[derive(Default)]
pub struct LogUniform {
    range: [f64; 2],
    logs: [f64; 2],
}

impl LogUniform {
    /// A factor from this range.
    pub fn draw(&mut self, rng: &mut ChaCha8Rng, range: [f64; 2]) -> f64 {
        let part = uniform(rng);
        if range[0] >= range[1] {
            return range[0];
        }
        if self.range != range {
            (self.range, self.logs) = (range, range.map(ln));
        }
        exp(self.logs[0] + (self.logs[1] - self.logs[0]) * part)
    }
}

/// Any order, each as likely as the next (Fisher and Yates).
pub fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}

/// The position of one of these weights, each as likely as it is heavy. There must be one above 0.
pub fn weighted(rng: &mut ChaCha8Rng, weights: impl Iterator<Item = f64> + Clone) -> usize {
    let mut left = uniform(rng) * weights.clone().sum::<f64>();
    let last = weights.clone().count().saturating_sub(1);
    let mut weights = weights;
    let found = weights.position(|weight| {
        left -= weight;
        left < 0.0
    });
    found.unwrap_or(last)
}

/// Mean 0, variance 1. Marsaglia and Tsang's ziggurat: nearly every draw is a comparison and a product, and
/// the logarithms and exponentials of the rest are ours and therefore the same bits.
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    ZIGGURAT.draw(rng)
}

/// Many of them.
pub fn normals<const N: usize>(rng: &mut ChaCha8Rng) -> [f64; N] {
    let ziggurat = &*ZIGGURAT;
    std::array::from_fn(|_| ziggurat.draw(rng))
}

const LAYERS: usize = 128;
/// Places lie in the middle of their steps, so that left and right are alike.
const HALF_STEP: f64 = 0.5 / (1u32 << 24) as f64;
/// Where the tail begins, and the area of every layer, for 128 of them.
const TAIL: f64 = 3.442_619_855_899;
const AREA: f64 = 9.912_563_035_262_17e-3;

/// Layers of equal area under the normal curve.
struct Ziggurat {
    /// Right edges, the widest first.
    edge: [f64; LAYERS + 1],
    /// Share of each layer that lies under the curve whatever its height.
    inner: [f64; LAYERS],
}

impl Ziggurat {
    fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        let Ziggurat { edge, inner } = self;
        loop {
            // One word: seven bits choose the layer, the rest the place in it.
            let bits = rng.random::<u32>();
            let layer = bits as usize % LAYERS;
            let side = f64::from(bits as i32 >> 7) * (1.0 / f64::from(1u32 << 24)) + HALF_STEP;
            if side.abs() < inner[layer] {
                return side * edge[layer];
            }
            if layer == 0 {
                return tail(rng).copysign(side);
            }
            let x = side * edge[layer];
            let height = |edge: f64| exp(-0.5 * (edge * edge - x * x));
            let (low, high) = (height(edge[layer]), height(edge[layer + 1]));
            if low + uniform(rng) * (high - low) < 1.0 {
                return x;
            }
        }
    }
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let curve = |x: f64| exp(-0.5 * x * x);
    let mut edge = [0.0; LAYERS + 1];
    (edge[0], edge[1]) = (AREA / curve(TAIL), TAIL);
    for layer in 2..LAYERS {
        let below: f64 = edge[layer - 1];
        edge[layer] = (-2.0 * ln(AREA / below + curve(below))).sqrt();
    }
    let inner = std::array::from_fn(|layer| edge[layer + 1] / edge[layer]);
    Ziggurat { edge, inner }
});

/// A normal number beyond the tail's beginning.
fn tail(rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let x = exponential(rng, 1.0 / TAIL);
        if 2.0 * exponential(rng, 1.0) > x * x {
            return TAIL + x;
        }
    }
}

/// Waiting time with this mean.
pub fn exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -ln(1.0 - uniform(rng)) * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_that_are_kept_have_numbers_of_their_own() {
        let streams =
            [Stream::Constants, Stream::Field, Stream::Weather, Stream::NodeField, Stream::NodeWeather];
        let first = |kept| streams.map(|stream| generator(Origin { seed: 7, kept }, stream).random::<u64>());
        let part_of = |kept| part(Origin { seed: 7, kept }, Stream::Field, 3).random::<u64>();
        assert!(first(true).iter().all(|number| !first(false).contains(number)));
        assert_ne!(part_of(true), part_of(false));
    }

    #[test]
    fn normal_numbers_are_normal_to_the_tail() {
        const DRAWS: u32 = 2_000_000;
        let mut rng = generator(Origin { seed: 7, kept: false }, Stream::Field);
        let (mut moments, mut beyond) = ([0.0f64; 4], [0u32; 3]);
        for _ in 0..DRAWS {
            let x = normal(&mut rng);
            for (moment, power) in moments.iter_mut().zip(1..) {
                *moment += x.powi(power) / f64::from(DRAWS);
            }
            for (count, limit) in beyond.iter_mut().zip([1.0, 2.0, TAIL]) {
                *count += u32::from(x.abs() > limit);
            }
        }
        for (moment, expected) in moments.into_iter().zip([0.0, 1.0, 0.0, 3.0]) {
            assert!((moment - expected).abs() < 0.02, "{moments:?}");
        }
        for (count, expected) in beyond.into_iter().zip([0.317_311, 0.045_500, 0.000_576_1]) {
            let share = f64::from(count) / f64::from(DRAWS);
            let noise = (expected / f64::from(DRAWS)).sqrt();
            assert!((share - expected).abs() < 4.0 * noise, "{share} beside {expected}");
        }
    }
}
