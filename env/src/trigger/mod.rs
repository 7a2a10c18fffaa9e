//! The trigger: one measured time per call in, the feedback block of the state and "decide again?" out.
//!
//! It runs beside every environment and knows times only, no cluster, no reward and no policy.
//!
//! A change of knobs is not a change of the world. So of every kind of call (communicator, collective,
//! size octave) it holds one small model with two parts that add up to the expected ln(measured ÷
//! predicted): a *level* that all settings of the kind share, and a constant *offset* of each setting
//! that ran. The first call with a setting only tells that setting's offset above the present level and
//! is evidence of nothing; after that every setting speaks about the level. When a change is established
//! the level jumps and the offsets stay, so a setting that comes back is known, whatever the network does
//! by then. Predictions per pair alone would not do: channels and chunks change times several-fold and
//! NCCL's prediction does not contain them.

mod config;
mod congestion;
mod cusum;
mod key;
mod kind;
mod pool;
mod signals;
mod worth;

pub use config::TriggerConfig;
pub use key::{Key, Ran};
pub use signals::Signals;

use dynamiccl_spec::math::ln;

use congestion::Congestion;
use pool::Pool;
use worth::Rhythm;

/// ln(measured ÷ predicted) beyond which a difference no longer counts.
const RATIO_LIMIT: f64 = 8.0;

/// The trigger of one environment.
#[derive(Debug, Clone)]
pub struct Trigger {
    config: TriggerConfig,
    pool: Pool,
    communicators: Box<[Group]>,
}

/// What all kinds of call of a communicator share.
#[derive(Debug, Clone, Copy)]
struct Group {
    congestion: Congestion,
    rhythm: Rhythm,
    /// Variance of ln times around what is expected: what a new kind starts from.
    variance: f64,
}

impl Group {
    fn new(config: &TriggerConfig) -> Self {
        Group {
            congestion: Congestion::default(),
            rhythm: Rhythm::new(config),
            variance: config.spread * config.spread,
        }
    }
}

impl Trigger {
    /// A trigger for this many communicators. All memory is taken here.
    pub fn new(config: TriggerConfig, communicators: usize) -> Self {
        let groups = vec![Group::new(&config); communicators];
        Trigger { pool: Pool::new(communicators), communicators: groups.into(), config }
    }

    /// Forgets everything, for the next episode; nothing is allocated or freed.
    pub fn clear(&mut self) {
        self.pool.clear();
        self.communicators.fill(Group::new(&self.config));
    }

    /// Takes in one measured time. `ran` is what really ran, `predicted_us` what NCCL predicted for it.
    /// Times that are no positive numbers tell nothing and change nothing.
    ///
    /// # Panics
    ///
    /// If the key's communicator is not one of those that [`Trigger::new`] was told of.
    pub fn observe(&mut self, key: Key, ran: Ran, measured_us: f64, predicted_us: f64) -> Signals {
        let group = &mut self.communicators[usize::from(key.communicator)];
        let ratio = ln(measured_us / predicted_us);
        if ratio.is_nan() {
            return Signals { congestion: group.congestion.signal(), ..Signals::default() };
        }
        let ratio = ratio.clamp(-RATIO_LIMIT, RATIO_LIMIT);
        let kind = self.pool.kind(key, || group.variance);
        let seen = kind.observe(&self.config, ran, ratio);
        if let Some(excess) = seen.excess {
            group.congestion.push(excess);
            group.variance += (seen.variance - group.variance) * self.config.spread_rate;
        }
        let worth = group.rhythm.push(&self.config, seen.change);
        Signals {
            ratio,
            expected: seen.expected,
            cusum: seen.cusum,
            error: seen.error,
            congestion: group.congestion.signal(),
            changed: seen.change.is_some(),
            fired: worth,
        }
    }
}

#[cfg(test)]
mod tests;
