//! A run in lines of JSON: one for each update, each judgement and each promotion.
//!
//! The same lines go to `metrics.jsonl` and to whoever reads `train --json`. What depends on the clock is
//! in `seconds`, `sps` and `time`, and nowhere else: all other fields are the same in every run of a seed.

use std::collections::BTreeMap;

use dynamiccl_env::reward;
use dynamiccl_spec::Head;
use dynamiccl_spec::gates::Gate;
use serde::Serialize;

use crate::learn::Losses;
use crate::progress::{Seconds, Update};
use crate::subject::Figures;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// A rollout was learned from.
    Update(Box<UpdateLine>),
    /// The policy was judged.
    Eval(EvalLine),
    /// The next stage begins.
    Promotion(PromotionLine),
}

/// Where a line stands in its run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stand {
    /// Steps of the run.
    pub step: u64,
    /// The stage, by name.
    pub stage: String,
    /// Seconds of the run, those before a resume included.
    pub seconds: f64,
    /// Steps per second since the process began.
    pub sps: f64,
    /// The figure that people watch, when the policy was judged last; without places before that.
    #[serde(flatten)]
    pub watched: Figures,
}

/// An update.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpdateLine {
    #[serde(flatten)]
    stand: Stand,
    update: u64,
    stage_step: u64,
    learning_rate: f32,
    epochs: usize,
    gradient: f32,
    explained_variance: f32,
    episodes: usize,
    episodic_return: Option<f32>,
    episodic_length: Option<f32>,
    losses: LossFields,
    entropy: BTreeMap<&'static str, f32>,
    reward: BTreeMap<&'static str, f32>,
    gain: f32,
    decided: f32,
    actions: BTreeMap<&'static str, Vec<u32>>,
    gates: BTreeMap<&'static str, u64>,
    time: TimeFields,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct LossFields {
    policy_loss: f32,
    value_loss: f32,
    entropy: f32,
    hindsight: f32,
    resources: f32,
    estimate: f32,
    gain: f32,
    lost: f32,
    approx_kl: f32,
    clipfrac: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct TimeFields {
    env: f64,
    act: f64,
    learn: f64,
}

/// A judgement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalLine {
    #[serde(flatten)]
    stand: Stand,
    /// All other figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether no other policy of the stage did better.
    pub best: bool,
    time: EvalTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct EvalTime {
    eval: f64,
}

/// A promotion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromotionLine {
    #[serde(flatten)]
    stand: Stand,
    /// The stage that has ended; `stage` is the one that begins.
    pub from: String,
    /// Whether its bar was passed; else it has run out of steps.
    pub passed: bool,
}

impl Line {
    /// An update.
    pub fn update(stand: Stand, update: &Update) -> Self {
        let heads = || Head::ALL.iter().map(|head| head.name());
        let Seconds { env, act, learn, .. } = update.seconds;
        Line::Update(Box::new(UpdateLine {
            stand,
            update: update.update,
            stage_step: update.stage_step,
            learning_rate: update.rate,
            epochs: update.epochs,
            gradient: update.gradient,
            explained_variance: update.explained_variance,
            episodes: update.episodes.map_or(0, |episodes| episodes.count),
            episodic_return: update.episodes.map(|episodes| episodes.mean_return),
            episodic_length: update.episodes.map(|episodes| episodes.mean_length),
            losses: LossFields::of(&update.losses),
            entropy: heads().zip(update.losses.entropy).collect(),
            reward: reward::NAMES.into_iter().zip(update.terms).collect(),
            gain: update.gain,
            decided: update.decided,
            actions: heads().zip(update.choices.iter().cloned()).collect(),
            gates: Gate::ALL.iter().map(|&gate| (gate.name(), update.gates.of(gate))).collect(),
            time: TimeFields { env, act, learn },
        }))
    }

    /// A judgement of a policy, with what the line does not have already.
    pub fn eval(stand: Stand, figures: Figures, best: bool, seconds: f64) -> Self {
        Line::Eval(EvalLine { stand, figures, best, time: EvalTime { eval: seconds } })
    }

    /// A promotion.
    pub fn promotion(stand: Stand, from: String, passed: bool) -> Self {
        Line::Promotion(PromotionLine { stand, from, passed })
    }

    /// The text of the line, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("words and numbers are JSON")
    }
}

impl LossFields {
    fn of(losses: &Losses) -> Self {
        LossFields {
            policy_loss: losses.policy,
            value_loss: losses.value,
            entropy: losses.entropy.iter().sum(),
            hindsight: losses.hindsight,
            resources: losses.resources,
            estimate: losses.estimate,
            gain: losses.gain,
            lost: losses.lost,
            approx_kl: losses.divergence,
            clipfrac: losses.clipped,
        }
    }
}
