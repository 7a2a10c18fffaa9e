//! The contract of every environment, word for word Gymnasium's: `reset`, `step`, spaces that
//! describe themselves, terminated apart from truncated.
//!
//! The simulator, recorded traces and live NCCL implement it, and whoever acts or checks knows nothing
//! else of them. Observations go into memory that the caller owns, so that a step never allocates.

pub mod check;
mod dressed;
mod random;
mod spaces;
mod stream;
#[cfg(test)]
mod tiny;
mod vector;

use dynamiccl_spec::action::HEADS;
use thiserror::Error;

pub use dressed::{Clothes, Dressed};
pub use random::RandomActor;
pub use spaces::{FeatureSpace, HeadSpace, Spaces};
pub use stream::Stream;
#[cfg(test)]
use tiny::{Tiny, TinyInfo};
pub use vector::{Slot, VecEnv, VecStep, seed_of};

/// A world that can be acted in.
pub trait Env: Send {
    /// What a step tells beside its reward.
    type Info: Clone + PartialEq + std::fmt::Debug;

    /// What is observed and what can be done.
    fn spaces(&self) -> &Spaces;

    /// Starts an episode. Seed once: with a seed, everything that follows is a function of it; without
    /// one, the next episode of the same stream begins.
    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<Self::Info, EnvError>;

    /// Acts on the observed call and observes the next one. After the end of an episode, the next call
    /// must be [`Env::reset`].
    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<Self::Info>, EnvError>;
}

/// What is seen before a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Rank-invariant features of the call: all that a decision may look at.
    pub context: Box<[f32]>,
    /// The call before and what was measured of it: for the LSTM.
    pub history: Box<[f32]>,
    /// What only a critic may see, while training: the hidden truth of the moment.
    pub privileged: Box<[f32]>,
    /// Which choices of each head are legal, as bits by index.
    pub mask: [u32; HEADS],
    /// Whether there is anything to decide: more than one choice, in a call that reaches a tuner.
    pub decides: bool,
}

impl Observation {
    /// Room for the observations of an environment.
    pub fn new(spaces: &Spaces) -> Self {
        Observation {
            context: vec![0.0; spaces.context_width()].into(),
            history: vec![0.0; spaces.history_width()].into(),
            privileged: vec![0.0; spaces.privileged_width()].into(),
            mask: [0; HEADS],
            decides: false,
        }
    }
}

/// What is done: one index per head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Action {
    /// The index of each head.
    pub choice: [u8; HEADS],
    /// Whether it was sampled and is not what the policy prefers.
    pub exploratory: bool,
}

/// What a step leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition<I> {
    /// The reward.
    pub reward: f64,
    /// Whether the job has ended.
    pub terminated: bool,
    /// Whether the episode was cut short.
    pub truncated: bool,
    /// The rest.
    pub info: I,
}

/// Why an environment refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnvError {
    /// The mask forbids it.
    #[error("head {head}: choice {choice} is not legal here (legal: {legal}); choose through the mask")]
    Illegal {
        /// The head.
        head: String,
        /// What was chosen.
        choice: String,
        /// What would have been legal.
        legal: String,
    },
    /// No episode is running.
    #[error("step without an episode: {0}; call reset first")]
    NoEpisode(&'static str),
    /// The machine below failed.
    #[error("{0}")]
    Backend(String),
    /// The machine below makes no calls any more, as nobody has given it more time.
    #[error("the time is over")]
    TimeIsOver,
}
