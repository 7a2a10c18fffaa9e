//! What changes while a job runs: other people's traffic, stragglers, faults, drift, jitter.
//!
//! Conditions are the exogenous state: the true time of a setting is its mean given them. The luck of
//! one call (jitter, a pause, which mode) is drawn once and shared by all settings, so that the best
//! of them stays reachable.

use dynamiccl_spec::math::exp;
use rand_chacha::ChaCha8Rng;

use crate::model::Conditions;
use crate::model::constants::Weather;
use crate::world::draw::{exponential, normal, uniform};
use crate::world::field::Modes;

const SECOND: f64 = 1e6;
const HOUR: f64 = 3600.0 * SECOND;
/// µs after which drift moves.
const DRIFT_STEP: f64 = 0.01 * SECOND;
/// A bit that no stream of a world has.
const ASIDE: u64 = 1 << 62;
/// The most of a network that others take.
const MOST_LOAD: f64 = 0.9;

/// The luck of one call, shared by all settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Luck {
    /// Factor on the time.
    pub jitter: f64,
    /// µs of pause.
    pub pause: f64,
    /// Below a setting's share of slow calls, this one is slow.
    pub mode: f64,
}

impl Luck {
    /// What a call takes whose true time is `micros`.
    pub fn apply(&self, micros: f64, modes: Option<Modes>) -> f64 {
        let mode = modes.map_or(1.0, |m| if self.mode < m.slow_share { m.slow } else { m.fast });
        micros * self.jitter * mode + self.pause
    }
}

/// How much rougher than usual a machine's weather is; 1 everywhere is as usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Climate {
    /// Factor on jitter.
    pub jitter: f64,
    /// Factor on how often ranks straggle.
    pub stragglers: f64,
    /// Factor on other people's traffic.
    pub load: f64,
    /// Factor on drift.
    pub drift: f64,
}

/// A machine's weather over the life of a job.
#[derive(Debug, Clone)]
pub struct WeatherState {
    constants: Weather,
    nics: f64,
    rng: ChaCha8Rng,
    conditions: Conditions,
    load_left: f64,
    straggler_left: f64,
    fault_left: f64,
    /// µs since drift has last moved.
    undrifted: f64,
}

impl WeatherState {
    /// The weather of a machine with this many NICs per node, in a typical moment.
    pub fn new(constants: &Weather, nics: u32, mut rng: ChaCha8Rng) -> Self {
        let load_left = exponential(&mut rng, constants.load_dwell * SECOND);
        let mut state = WeatherState {
            constants: *constants,
            nics: f64::from(nics.max(1)),
            rng,
            conditions: Conditions::CALM,
            load_left,
            straggler_left: 0.0,
            fault_left: 0.0,
            undrifted: 0.0,
        };
        if uniform(&mut state.rng) < 0.5 {
            state.toggle_load();
        }
        state
    }

    /// The same weather in this climate.
    pub fn in_climate(mut self, climate: &Climate) -> Self {
        self.constants.jitter *= climate.jitter;
        self.constants.straggler_rate *= climate.stragglers;
        self.constants.load *= climate.load;
        self.constants.drift *= climate.drift;
        self.conditions.load = (self.conditions.load * climate.load).min(MOST_LOAD);
        self
    }

    /// The same weather with random numbers of its own: what is drawn from it changes nothing here.
    pub fn aside(&self) -> Self {
        let mut aside = self.clone();
        aside.rng.set_stream(self.rng.get_stream() ^ ASIDE);
        aside
    }

    /// A rank begins to straggle now.
    pub fn strike_straggler(&mut self) {
        self.conditions.speed = self.constants.straggler_speed.clamp(0.1, 1.0);
        self.straggler_left = exponential(&mut self.rng, self.constants.straggler_dwell * SECOND);
    }

    /// A NIC fails now: the next call stalls, and those after it have one NIC less for a while.
    pub fn strike_fault(&mut self) {
        // The last NIC has nobody to hand its channels to: it comes back after the stall.
        self.conditions.nics = ((self.nics - 1.0) / self.nics).max(1.0 / self.nics);
        self.conditions.stall = self.constants.fault_stall * SECOND;
        self.fault_left = exponential(&mut self.rng, self.constants.fault_dwell * SECOND);
    }

    /// The conditions of the moment.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// The conditions after this many µs more.
    pub fn advance(&mut self, micros: f64) -> Conditions {
        let micros = micros.clamp(0.0, HOUR);
        self.conditions.stall = 0.0;
        self.advance_load(micros);
        self.advance_straggler(micros);
        self.advance_fault(micros);
        self.advance_drift(micros);
        self.conditions
    }

    /// The luck of the next call.
    pub fn luck(&mut self) -> Luck {
        let spread = self.constants.jitter;
        let jitter = exp(spread * normal(&mut self.rng) - spread * spread / 2.0);
        let hit = uniform(&mut self.rng) < self.constants.pause_rate;
        let tail = exponential(&mut self.rng, 1.0 / self.constants.pause_shape.max(0.1));
        let pause = if hit { self.constants.pause * exp(tail.min(10.0)) } else { 0.0 };
        Luck { jitter, pause, mode: uniform(&mut self.rng) }
    }

    /// Drift is slow: it moves once in a while, by what has come together.
    fn advance_drift(&mut self, micros: f64) {
        self.undrifted += micros;
        if self.undrifted < DRIFT_STEP {
            return;
        }
        let step = self.constants.drift * (std::mem::take(&mut self.undrifted) / HOUR).sqrt();
        self.conditions.latency = drifted(self.conditions.latency, step, &mut self.rng);
        self.conditions.bandwidth = drifted(self.conditions.bandwidth, step, &mut self.rng).min(1.0);
    }

    fn advance_load(&mut self, micros: f64) {
        self.load_left -= micros;
        // As often as it would have come and gone meanwhile: else a moment would foretell the next one.
        while self.load_left <= 0.0 {
            self.toggle_load();
            self.load_left += exponential(&mut self.rng, self.constants.load_dwell * SECOND);
        }
    }

    fn toggle_load(&mut self) {
        let away = self.conditions.load > 0.0;
        self.conditions.load =
            if away { 0.0 } else { (self.constants.load * beta_2_5(&mut self.rng) * 3.5).min(MOST_LOAD) };
    }

    fn advance_straggler(&mut self, micros: f64) {
        self.straggler_left -= micros;
        if self.straggler_left <= 0.0 {
            self.conditions.speed = 1.0;
            if uniform(&mut self.rng) < self.constants.straggler_rate * micros / HOUR {
                self.strike_straggler();
            }
        }
    }

    fn advance_fault(&mut self, micros: f64) {
        self.fault_left -= micros;
        if self.fault_left <= 0.0 {
            self.conditions.nics = 1.0;
            if uniform(&mut self.rng) < self.constants.fault_rate * micros / HOUR {
                self.strike_fault();
            }
        }
    }
}

/// A log random walk that stays within a factor of two.
fn drifted(x: f64, step: f64, rng: &mut ChaCha8Rng) -> f64 {
    (x * exp(step * normal(rng))).clamp(0.5, 2.0)
}

/// Beta(2, 5): the second smallest of six uniform numbers.
fn beta_2_5(rng: &mut ChaCha8Rng) -> f64 {
    let (mut least, mut second) = (1.0f64, 1.0f64);
    for _ in 0..6 {
        let x = uniform(rng);
        if x < least {
            second = least;
            least = x;
        } else if x < second {
            second = x;
        }
    }
    second
}
