//! What a trainer says about each update: numbers for bars, files and TensorBoard, which others write.

use dynamiccl_env::reward;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::gates::GateCounts;

use crate::learn::Losses;

/// One update: a rollout and what was learned from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Steps of the run so far.
    pub step: u64,
    /// Updates of the run so far.
    pub update: u64,
    /// The stage, by its number in the curriculum.
    pub stage: usize,
    /// Steps in the stage so far.
    pub stage_step: u64,
    /// Learning rate.
    pub rate: f32,
    /// Mean losses over the minibatches of the last epoch; of the one that moved the policy too far, where one did.
    pub losses: Losses,
    /// Longest gradient before it was scaled down.
    pub gradient: f32,
    /// How much of the returns' variance the critic explains.
    pub explained_variance: f32,
    /// Epochs that were gone through before the policy had moved far enough.
    pub epochs: usize,
    /// Mean return and length of episodes that ended; none where none did.
    pub episodes: Option<Episodes>,
    /// Mean terms of the reward over deciding calls, in the order of [`reward::NAMES`].
    pub terms: [f32; reward::TERMS],
    /// Mean of ln(NCCL's own time ÷ ours) over calls that NCCL tunes.
    pub gain: f32,
    /// Share of calls that decide something.
    pub decided: f32,
    /// How often each choice of each head was taken, over deciding calls.
    pub choices: [Vec<u32>; HEADS],
    /// How often gates fired.
    pub gates: GateCounts,
    /// Where the time went.
    pub seconds: Seconds,
}

/// Episodes that ended during a rollout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episodes {
    /// How many.
    pub count: usize,
    /// Mean sum of rewards.
    pub mean_return: f32,
    /// Mean calls.
    pub mean_length: f32,
}

/// Seconds of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seconds {
    /// Environments stepping, with hindsight.
    pub env: f64,
    /// The network acting.
    pub act: f64,
    /// Gradients and steps along them.
    pub learn: f64,
    /// Judging.
    pub eval: f64,
}
