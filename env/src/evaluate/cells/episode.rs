//! One episode in one world: true times, the order of calls and their luck, the same for every tuner.

use std::sync::Arc;

use dynamiccl_spec::math::ln;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::EPISODES;
use super::options::{Ground, Options};
use crate::evaluate::calls::Timed;
use crate::evaluate::judge::WARM_UP;
use crate::gym::seed_of;
use crate::model::{Call, Conditions, Fabric};
use crate::sim::Simulator;
use crate::world::draw::shuffle;
use crate::world::{Luck, Modes, WeatherState};

/// Calls of an episode.
pub const CALLS: usize = 1000;
/// Stretches of an episode in which the weather stays as it is.
pub const SEGMENTS: usize = 4;
/// Calls of such a stretch.
const SEGMENT: usize = CALLS / SEGMENTS;
/// µs from one stretch to the next: about as long as other people's traffic stays.
const BETWEEN: f64 = 10e6;
/// Lucks of trials; later trials meet them again.
const TRIALS: usize = 1024;
/// Weather of the nominal world.
const EVEN: Luck = Luck { jitter: 1.0, pause: 0.0, mode: 1.0 };

/// One episode.
pub struct Episode {
    /// Its kinds of call.
    pub kinds: Vec<Kind>,
    /// Its calls, each by its kind.
    pub calls: Vec<Drawn>,
    /// The luck of trials, the same in all episodes of a world.
    pub trials: Arc<[Luck]>,
    /// Which of them the first trial has: another in each episode.
    pub first_trial: usize,
}

/// One kind of call.
pub struct Kind {
    /// Its cell.
    pub cell: usize,
    /// What everything takes there.
    pub truth: Truth,
}

/// A call, before anything is chosen.
#[derive(Clone, Copy)]
pub struct Drawn {
    pub kind: usize,
    pub luck: Luck,
}

/// What every launch of a cell takes.
pub struct Truth {
    /// By segment, then by launch.
    times: Vec<Timed>,
    launches: usize,
    fastest: [usize; SEGMENTS],
    /// Judged calls of each segment.
    weights: [f64; SEGMENTS],
    /// By launch.
    modes: Vec<Option<Modes>>,
}

impl Episode {
    /// The episodes of a world in which every cell comes up once; none where the weather is nobody's.
    pub fn all(
        ground: &Ground,
        simulator: &Simulator,
        mut weather: Option<WeatherState>,
        seed: u64,
    ) -> Vec<Episode> {
        let trials: Arc<[Luck]> = (0..TRIALS).map(|_| luck(&mut weather)).collect();
        let episode = |number| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed_of(seed, number));
            Episode::new(ground, simulator, number, &mut weather, &mut rng, &trials)
        };
        (0..EPISODES).map(episode).collect()
    }

    fn new(
        ground: &Ground,
        simulator: &Simulator,
        number: usize,
        weather: &mut Option<WeatherState>,
        rng: &mut ChaCha8Rng,
        trials: &Arc<[Luck]>,
    ) -> Self {
        let sizes = ground.cells.len() / EPISODES;
        let cells: Vec<usize> = (0..sizes).map(|size| size * EPISODES + (size + number) % EPISODES).collect();
        let order = order(cells.len(), rng);
        let mut calls = Vec::with_capacity(CALLS);
        let mut fabrics = Vec::with_capacity(SEGMENTS);
        for kinds in order.chunks(SEGMENT) {
            fabrics.push(simulator.fabric().under(&conditions(weather)));
            calls.extend(kinds.iter().map(|&kind| Drawn { kind, luck: luck(weather) }));
        }
        let kind = |(kind, cell): (usize, usize)| {
            let weights = weights(&order, kind);
            Kind { cell, truth: Truth::new(&ground.cells[cell], simulator, &fabrics, weights) }
        };
        let kinds = cells.into_iter().enumerate().map(kind).collect();
        Episode { kinds, calls, trials: Arc::clone(trials), first_trial: number * TRIALS / EPISODES }
    }

    /// The truth of every cell that comes up.
    pub fn truths(&self) -> impl Iterator<Item = (usize, &Truth)> {
        self.kinds.iter().map(|kind| (kind.cell, &kind.truth))
    }
}

impl Truth {
    fn new(options: &Options, simulator: &Simulator, fabrics: &[Fabric], weights: [f64; SEGMENTS]) -> Self {
        let (collective, bytes) = (options.asked.call.collective, options.asked.call.bytes);
        let launches = options.launches.len();
        let mut times = Vec::with_capacity(SEGMENTS * launches);
        for fabric in fabrics {
            times.extend(options.launches.iter().enumerate().map(|(at, launch)| {
                let schedule = options.asked.schedule.filter(|_| options.scheduled == Some(at));
                let micros = match schedule {
                    Some(schedule) => schedule.micros(simulator, fabric, collective, bytes),
                    None => simulator.micros_of(fabric, &Call::of(collective, bytes, &launch.realised)),
                };
                Timed { micros, log: ln(micros) }
            }));
        }
        let fastest = std::array::from_fn(|segment| {
            let times: &[Timed] = &times[segment * launches..][..launches];
            let faster =
                |best: usize, at: usize| if times[at].micros < times[best].micros { at } else { best };
            (0..launches).fold(options.own, faster)
        });
        let modes = options.launches.iter().enumerate().map(|(at, launch)| {
            let by_nccl = options.scheduled != Some(at);
            by_nccl.then(|| simulator.modes(bytes, &launch.realised)).flatten()
        });
        let modes = modes.collect();
        Truth { times, launches, fastest, weights, modes }
    }

    /// The true time of a launch in a segment.
    pub fn time(&self, segment: usize, launch: usize) -> Timed {
        self.times[segment * self.launches + launch]
    }

    /// The launch with the smallest true time of a segment; NCCL's own where none is faster.
    pub fn fastest_in(&self, segment: usize) -> usize {
        self.fastest[segment]
    }

    /// Judged calls of all segments.
    pub fn calls(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The two modes of a launch, where it has two.
    pub fn modes(&self, launch: usize) -> Option<Modes> {
        self.modes[launch]
    }

    /// The times of each segment by launch, and its judged calls.
    pub fn segments(&self) -> impl Iterator<Item = (&[Timed], f64)> {
        self.times.chunks_exact(self.launches.max(1)).zip(self.weights)
    }

    /// The fastest launch of each segment, and its judged calls.
    pub fn fastest(&self) -> impl Iterator<Item = (usize, f64)> {
        self.fastest.into_iter().zip(self.weights)
    }
}

/// The segment of a call.
pub fn segment(call: usize) -> usize {
    call / SEGMENT
}

/// A loop over all kinds, shuffled anew each time, cut off after the last call.
fn order(kinds: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order = Vec::with_capacity(CALLS + kinds);
    while order.len() < CALLS {
        let mut once: Vec<usize> = (0..kinds).collect();
        shuffle(&mut once, rng);
        order.append(&mut once);
    }
    order.truncate(CALLS);
    order
}

/// Judged calls of a kind in each segment.
fn weights(order: &[usize], kind: usize) -> [f64; SEGMENTS] {
    let mut weights = [0.0; SEGMENTS];
    for call in (WARM_UP as usize..order.len()).filter(|&call| order[call] == kind) {
        weights[segment(call)] += 1.0;
    }
    weights
}

/// The weather of the next segment, without the stall of a fault: it belongs to one call, not to a stretch.
fn conditions(weather: &mut Option<WeatherState>) -> Conditions {
    let Some(weather) = weather else { return Conditions::CALM };
    Conditions { stall: 0.0, ..weather.advance(BETWEEN) }
}

fn luck(weather: &mut Option<WeatherState>) -> Luck {
    weather.as_mut().map_or(EVEN, WeatherState::luck)
}
