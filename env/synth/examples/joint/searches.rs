//! Joint searches of one call, with the grid beside them.

use dynamiccl_policies::random::Random;
use dynamiccl_policies::search::mraco::{Mraco, Schedule};
use dynamiccl_policies::search::{Dimension, Point, Search, Space, drive};
use dynamiccl_spec::math::exp;
use dynamiccl_synth::joint::{DIMENSIONS, ORDERED, SIZES, START, Setting, Task};

/// The spread of a call.
const NOISE: f64 = 0.05;

/// What a search has found.
pub struct Found {
    /// The setting.
    pub setting: Setting,
    /// Its true µs.
    pub micros: f64,
    /// Full measurements that were spent.
    pub trials: f64,
}

/// The joint space.
pub fn space() -> Space {
    let dimension =
        |d: usize| if ORDERED[d] { Dimension::ordered(SIZES[d]) } else { Dimension::named(SIZES[d]) };
    Space::new(&std::array::from_fn::<_, DIMENSIONS, _>(dimension))
}

/// The setting of a point.
pub fn setting(point: &Point) -> Setting {
    Setting::at(std::array::from_fn(|d| point.value(d)))
}

/// MRACO over the joint space.
pub fn mraco(task: &Task<'_>, seed: u64) -> Found {
    let mut noise = Random::of(seed, 1);
    let start = Point::at(START.map(|value| value as u8));
    let schedule = Schedule::of(space().points());
    let calls = schedule.calls();
    let mut search = Mraco::new(space(), start, &[1.0; 3], schedule, seed);
    let found = drive(&mut search, f64::INFINITY, |trial| {
        let spread = NOISE / (calls * trial.resource).sqrt();
        task.micros(&setting(&trial.point)) * exp(spread * noise.normal())
    });
    let setting = setting(&found.expect("the full mesh always runs").point);
    Found { setting, micros: task.micros(&setting), trials: search.spent() }
}
