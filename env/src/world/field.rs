//! What no model knows: how far a real setting is from the closed form.
//!
//! The fitted model leaves residuals that are smooth in size and channels, differ by algorithm and
//! protocol, jump at thresholds, and for some settings have two modes. A field is one draw of such
//! residuals, as large and as correlated as the measured ones. It multiplies a time and knows nothing
//! of links, so a faster link stays a faster link in every world.

use std::sync::OnceLock;

use dynamiccl_spec::math::{exp, log2};
use dynamiccl_spec::{Algorithm, Collective, Pair};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::model::constants::Residual;
use crate::world::draw::{Origin, Stream, normal, normals, part, uniform};

/// Pairs that exist: three protocols of tree and ring, one of each other algorithm.
const PAIRS: usize = 11;
/// Grid nodes over channels: one per doubling, 1 to 64.
const CHANNELS: usize = 7;
/// Grid nodes over size: one per doubling, 1 B to 1 TiB.
const SIZES: usize = 41;
/// Settings this many octaves of size apart are bimodal or not independently of each other.
const MODE_OCTAVES: usize = 2;
/// Such stretches of size.
const MODES: usize = SIZES.div_ceil(MODE_OCTAVES);
/// Collectives and pairs.
const OWN: usize = Collective::TUNED.len() * PAIRS;

/// One draw of everything that the model does not know. Its parts are drawn when they are first asked for:
/// each has random numbers of its own, so that the order of questions changes nothing.
#[derive(Debug, Clone)]
pub struct Field {
    origin: Origin,
    stream: Stream,
    residual: Residual,
    /// By pair.
    surfaces: [OnceLock<Box<Surface>>; PAIRS],
    /// By collective and pair: what a collective has to itself, by size.
    own: [OnceLock<Box<[f32; SIZES]>>; OWN],
}

/// What all collectives share of one pair.
#[derive(Debug, Clone)]
struct Surface {
    /// By channels and size.
    logs: [f32; CHANNELS * SIZES],
    /// By channels and stretch of size: share of calls that are slow.
    slow_share: [f32; CHANNELS * MODES],
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        (self.origin, self.stream, self.residual) == (other.origin, other.stream, other.residual)
    }
}

/// The two modes of a setting, relative to its true time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Share of calls in the slow mode.
    pub slow_share: f64,
    /// A fast call's time relative to the mean.
    pub fast: f64,
    /// A slow call's time relative to the mean.
    pub slow: f64,
}

impl Field {
    /// The field of a world, as large as these residuals and drawn from this stream.
    pub fn new(residual: &Residual, origin: Origin, stream: Stream) -> Self {
        let own = [const { OnceLock::new() }; OWN];
        Field { origin, stream, residual: *residual, surfaces: [const { OnceLock::new() }; PAIRS], own }
    }

    /// The factor on a setting's time.
    pub fn factor(&self, collective: Collective, pair: Pair, channels: u32, bytes: u64) -> f64 {
        let at = Position::new(pair, channels, bytes);
        let surface = self.surface(at.pair);
        let cell = at.channel * SIZES + at.size;
        let next = if at.channel + 1 < CHANNELS { SIZES } else { 0 };
        let here = mix_at(&surface.logs, cell, at.size_part);
        let beside = mix_at(&surface.logs, cell + next, at.size_part);
        let own = match collective.id() {
            id if id < Collective::TUNED.len() => {
                mix_at(self.own(id * PAIRS + at.pair), at.size, at.size_part)
            }
            _ => 0.0,
        };
        exp(mix(here, beside, at.channel_part) + own) * self.mean_mode(surface.slow_share(&at))
    }

    /// The modes of a setting, if it has two.
    pub fn modes(&self, pair: Pair, channels: u32, bytes: u64) -> Option<Modes> {
        let at = Position::new(pair, channels, bytes);
        let slow_share = self.surface(at.pair).slow_share(&at);
        let mean = self.mean_mode(slow_share);
        (slow_share > 0.0).then(|| Modes { slow_share, fast: 1.0 / mean, slow: self.slow_factor() / mean })
    }

    fn slow_factor(&self) -> f64 {
        self.residual.bimodal_slow.max(1.0)
    }

    fn mean_mode(&self, slow_share: f64) -> f64 {
        1.0 + slow_share * (self.slow_factor() - 1.0)
    }

    fn surface(&self, pair: usize) -> &Surface {
        self.surfaces[pair].get_or_init(|| {
            Box::new(Surface::draw(&self.residual, &mut part(self.origin, self.stream, pair)))
        })
    }

    fn own(&self, index: usize) -> &[f32; SIZES] {
        self.own[index].get_or_init(|| {
            let amplitude = self.residual.spread * self.residual.own.clamp(0.0, 1.0).sqrt();
            let mut rng = part(self.origin, self.stream, PAIRS + index);
            Box::new(line(keeps(self.residual.size_octaves), &mut rng).map(|x| (x * amplitude) as f32))
        })
    }
}

impl Surface {
    /// One pair's residuals: correlated along channels and size, with cliffs along the size.
    fn draw(residual: &Residual, rng: &mut ChaCha8Rng) -> Self {
        let amplitude = residual.spread * (1.0 - residual.own.clamp(0.0, 1.0)).sqrt();
        let (keep, keep_size) = (keeps(residual.channel_octaves), keeps(residual.size_octaves));
        let fresh = (1.0 - keep * keep).sqrt();
        let cliff = Cliff::draw(residual, rng);
        let mut row = line(keep_size, rng);
        let mut logs = [0.0; CHANNELS * SIZES];
        for (channel, cells) in logs.chunks_exact_mut(SIZES).enumerate() {
            if channel > 0 {
                let step = line(keep_size, rng);
                for (x, step) in row.iter_mut().zip(step) {
                    *x = *x * keep + step * fresh;
                }
            }
            for (size, (cell, x)) in cells.iter_mut().zip(row).enumerate() {
                *cell = (x * amplitude + cliff.at(size)) as f32;
            }
        }
        let slow_share = std::array::from_fn(|_| match uniform(rng) < residual.bimodal_rate {
            true => (0.1 + 0.4 * uniform(rng)) as f32,
            false => 0.0,
        });
        Surface { logs, slow_share }
    }

    fn slow_share(&self, at: &Position) -> f64 {
        f64::from(self.slow_share[at.channel * MODES + at.size / MODE_OCTAVES])
    }
}

/// Where a setting lies on the grid: the node at or below it, and how far to the next.
struct Position {
    pair: usize,
    channel: usize,
    channel_part: f64,
    size: usize,
    size_part: f64,
}

impl Position {
    fn new(pair: Pair, channels: u32, bytes: u64) -> Self {
        let (channel, channel_part) = node(u64::from(channels), CHANNELS);
        let (size, size_part) = node(bytes, SIZES);
        let pair = match pair.algorithm {
            Algorithm::Tree | Algorithm::Ring => pair.index(),
            other => other.id() + 4,
        };
        Position { pair, channel, channel_part, size, size_part }
    }
}

/// A step at a random size, or none: protocols and transports switch at thresholds.
struct Cliff {
    from: usize,
    step: f64,
}

impl Cliff {
    fn draw(residual: &Residual, rng: &mut ChaCha8Rng) -> Self {
        const FIRST: u32 = 10;
        const LAST: u32 = 26;
        let there = uniform(rng) < residual.cliff_rate;
        let from = rng.random_range(FIRST..LAST) as usize;
        Cliff { from, step: if there { normal(rng) * residual.cliff } else { 0.0 } }
    }

    /// Half below and half above, so that a cliff moves no average.
    fn at(&self, size: usize) -> f64 {
        if size < self.from { -self.step / 2.0 } else { self.step / 2.0 }
    }
}

/// Unit-variance noise over the sizes in which neighbours share `keep`.
fn line(keep: f64, rng: &mut ChaCha8Rng) -> [f64; SIZES] {
    let fresh = (1.0 - keep * keep).sqrt();
    let mut line = normals::<SIZES>(rng);
    for at in 1..SIZES {
        line[at] = line[at - 1] * keep + line[at] * fresh;
    }
    line
}

/// Correlation of neighbours one octave apart, for a correlation length in octaves.
fn keeps(octaves: f64) -> f64 {
    exp(-1.0 / octaves.max(1e-3))
}

/// Grid node at or below log2 of `x`, and how far to the next.
fn node(x: u64, nodes: usize) -> (usize, f64) {
    let x = x.max(1);
    // Most counts are powers of two, whose logarithm needs no polynomial.
    let whole = if x.is_power_of_two() { f64::from(x.trailing_zeros()) } else { log2(x as f64) };
    let exact = whole.min((nodes - 1) as f64);
    let node = (exact as usize).min(nodes - 2);
    (node, exact - node as f64)
}

fn mix(a: f64, b: f64, part: f64) -> f64 {
    a + (b - a) * part
}

fn mix_at(grid: &[f32], at: usize, part: f64) -> f64 {
    mix(f64::from(grid[at]), f64::from(grid[at + 1]), part)
}
