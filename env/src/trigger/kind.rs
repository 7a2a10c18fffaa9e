//! The running model of one kind of call: a shared level, one offset per setting, and a spread.
//!
//! Level and offsets are estimated as a Kalman filter would (variances in squared spreads, their
//! covariance neglected): the less is known of one, the more of a residual it takes. The residuals of such
//! a filter, divided by their standard deviation, are independent of each other, which is what CUSUM
//! needs, from the second call with a setting on.

use super::config::TriggerConfig;
use super::cusum::{Cusum, Shift};
use super::key::Ran;

/// Settings that a kind remembers; the longest unused one makes room.
const SETTINGS: usize = 8;
/// Calls that the assumed spread is worth.
const PRIOR_CALLS: f64 = 4.0;
/// How fast the best level is forgotten, per call.
const FORGET: f64 = 1.0 / 256.0;
/// How fast the mean over settings follows, per call.
const FOLLOW: f64 = 1.0 / 8.0;

/// The model of one kind of call.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// What the settings are; apart, so that they are compared at once.
    rans: [Ran; SETTINGS],
    settings: [Setting; SETTINGS],
    /// Settings that are known.
    known: usize,
    /// Calls of the kind.
    calls: u32,
    /// Residuals that the spread has seen.
    residuals: u32,
    level: f64,
    level_variance: f64,
    /// The best level of late.
    best: f64,
    /// Variance of residuals.
    variance: f64,
    /// Mean of late, whatever ran.
    mean: f64,
    cusum: Cusum,
}

/// What is known of one setting.
#[derive(Debug, Clone, Copy, Default)]
struct Setting {
    /// The call in which it ran last.
    used: u32,
    offset: f64,
    variance: f64,
}

/// What a call told.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// What was expected.
    pub expected: f64,
    /// CUSUM relative to its threshold.
    pub cusum: f64,
    /// Residual in spreads.
    pub error: f64,
    /// How far above the best level; none where the setting is new.
    pub excess: Option<f64>,
    /// The established change.
    pub change: Option<Shift>,
    /// Variance of residuals.
    pub variance: f64,
}

impl Kind {
    /// A kind of which nothing is known but a guess of its variance.
    pub fn new(variance: f64) -> Self {
        Kind {
            rans: [Ran::default(); SETTINGS],
            settings: [Setting::default(); SETTINGS],
            known: 0,
            calls: 0,
            residuals: 0,
            level: 0.0,
            level_variance: 0.0,
            best: 0.0,
            variance,
            mean: 0.0,
            cusum: Cusum::default(),
        }
    }

    #[cfg(test)]
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Takes in one ln(measured ÷ predicted).
    pub fn observe(&mut self, config: &TriggerConfig, ran: Ran, ratio: f64) -> Seen {
        self.calls = self.calls.saturating_add(1);
        let before = if self.calls == 1 { ratio } else { self.mean };
        self.mean = before + (ratio - before) * FOLLOW;
        match self.find(ran) {
            Some(at) => self.again(config, at, ratio),
            None => self.first(config, ran, ratio, before),
        }
    }

    /// Where a setting is. Without a branch per setting: which one runs cannot be predicted.
    fn find(&self, ran: Ran) -> Option<usize> {
        let bit = |(at, other): (usize, &Ran)| u32::from(*other == ran) << at;
        let same: u32 = self.rans.iter().enumerate().map(bit).sum();
        let same = same & ((1 << self.known) - 1);
        (same != 0).then(|| same.trailing_zeros() as usize)
    }

    /// Where a new setting goes: the next place, or that of the one unused for longest.
    fn place(&mut self) -> usize {
        if self.known < SETTINGS {
            self.known += 1;
            return self.known - 1;
        }
        (1..SETTINGS).fold(
            0,
            |oldest, at| {
                if self.settings[at].used < self.settings[oldest].used { at } else { oldest }
            },
        )
    }

    /// The first call with a setting: it says where the setting stands, and nothing else.
    fn first(&mut self, config: &TriggerConfig, ran: Ran, ratio: f64, expected: f64) -> Seen {
        let at = self.place();
        let (offset, variance) = (ratio - self.level, 1.0 + self.level_variance);
        self.rans[at] = ran;
        self.settings[at] = Setting { used: self.calls, offset, variance };
        let cusum = self.cusum.score() / config.threshold;
        Seen { expected, cusum, error: 0.0, excess: None, change: None, variance: self.variance }
    }

    fn again(&mut self, config: &TriggerConfig, at: usize, ratio: f64) -> Seen {
        self.level_variance += config.drift;
        let Setting { offset, variance, .. } = self.settings[at];
        let expected = offset + self.level;
        let predictive = 1.0 + self.level_variance + variance;
        let deviation = (self.variance * predictive).sqrt();
        let residual = ratio - expected;
        let error = residual / deviation;
        let score = error.clamp(-config.clip, config.clip);
        let clipped = score * deviation;
        let excess = self.level + clipped - self.best;
        self.learn_spread(config, score);
        if self.residuals > config.burn_in {
            self.cusum.push(config.slack, score, clipped, residual);
        }
        let cusum = (self.cusum.score() / config.threshold).clamp(-1.0, 1.0);
        let change = self.cusum.take(config.threshold, 0.5 * config.clip * deviation);
        match change {
            Some(shift) => self.jump(shift),
            None => self.learn(at, clipped, (1.0 - cusum.abs()) / predictive),
        }
        self.settings[at].used = self.calls;
        let best = self.best + (self.level - self.best) * FORGET;
        self.best = if best < self.level { best } else { self.level };
        Seen { expected, cusum, error: error.abs(), excess: Some(excess), change, variance: self.variance }
    }

    /// Shares a residual out between level and offset, by what is not known of them. `trust` is less under
    /// suspicion: what CUSUM is about to establish must not be taken for drift.
    fn learn(&mut self, at: usize, residual: f64, trust: f64) {
        let setting = &mut self.settings[at];
        let (level, offset) = (trust * self.level_variance, trust * setting.variance);
        self.level += level * residual;
        self.level_variance -= level * self.level_variance;
        setting.offset += offset * residual;
        setting.variance -= offset * setting.variance;
    }

    fn jump(&mut self, shift: Shift) {
        self.level += shift.by;
        self.level_variance = shift.variance;
    }

    fn learn_spread(&mut self, config: &TriggerConfig, score: f64) {
        let early = 1.0 / (f64::from(self.residuals) + PRIOR_CALLS + 1.0);
        let rate = if early > config.spread_rate { early } else { config.spread_rate };
        self.residuals = self.residuals.saturating_add(1);
        let variance = self.variance + rate * self.variance * (score * score - 1.0);
        let least = config.least_spread * config.least_spread;
        self.variance = if variance > least { variance } else { least };
    }
}
