//! Everything that a run can be told, with what it is when nobody says: saved beside the run, compared
//! when it is resumed.

use dynamiccl_policies::network::Shape;
use dynamiccl_spec::action::HEADS;
use serde::{Deserialize, Serialize};

/// How an agent is trained.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Widths of the network.
    pub network: NetworkConfig,
    /// How experience is gathered.
    pub rollout: RolloutConfig,
    /// What is minimised.
    pub loss: LossConfig,
    /// How steps are taken.
    pub optimiser: OptimiserConfig,
    /// How often the agent is judged while it trains.
    pub evaluation: EvaluationConfig,
    /// What is taken away, to see what it is worth.
    pub without: Without,
}

/// Widths of the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Numbers that a context is summed up in.
    pub embedding: usize,
    /// Cells of the LSTM.
    pub memory: usize,
    /// Width of a role's expert.
    pub expert: usize,
    /// Numbers from which resources are chosen.
    pub resource: usize,
    /// Width of the critic's layers.
    pub critic: usize,
    /// Whether the memory starts as a table of how each pair did in each band of sizes.
    pub table: bool,
}

/// How experience is gathered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolloutConfig {
    /// Environments side by side.
    pub environments: usize,
    /// Calls of each between two updates; also the length of a sequence in a minibatch.
    pub steps: usize,
    /// How much the next reward counts.
    pub discount: f32,
    /// λ of the generalised advantage estimate.
    pub trace: f32,
    /// Share of environments in which decisions never see the history: what a deployed policy without a
    /// recorded history does.
    pub held: f32,
    /// Most calls of an episode there: nothing is remembered, so many short jobs teach more than a long one.
    pub lesson: usize,
    /// Most calls of an episode elsewhere; drawn anew for each, from an eighth of it, log-uniformly. Many worlds
    /// teach more than long ones: after a hundred calls there is little left to find out about one.
    pub calls: usize,
    /// Share of the episodes elsewhere in which the most probable is chosen, as a deployed policy does: what it will
    /// remember is then what it learns to decide with. They have no policy loss.
    pub greedy: f32,
    /// Most calls between two refreshes of the memory; drawn anew for each episode, from 1, log-uniformly.
    pub refresh: u32,
    /// Share of deciding calls of which the simulator is asked what every choice would have been worth, where
    /// decisions see the history; where they do not it is asked about all. 0: about none anywhere.
    pub hindsight: f32,
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// Weight of the clipped surrogate objective of PPO.
    pub policy: f32,
    /// How far a probability may move before it stops paying, first and last.
    pub clip: [f32; 2],
    /// Weight of the value loss.
    pub value: f32,
    /// How far a value may move in units of normalised returns; 0 for any distance.
    pub value_clip: f32,
    /// Weight of the entropy, first and last.
    pub entropy: [f32; 2],
    /// What the entropy of each head counts, relative to the others: path, pair, channels, chunk, threads.
    pub entropy_heads: [f32; HEADS],
    /// Weight of what choosing as the network does is expected to win, where hindsight knows it.
    pub worth: f32,
    /// Weight of the likelihood of the pairs that should have been chosen, where hindsight knows them.
    pub hindsight: f32,
    /// Weight of the likelihood of the channels and chunks that each pair should have had.
    pub resources: f32,
    /// How much slower (ln) a choice is that should be a third as likely.
    pub temperature: f32,
    /// How much slower (ln) a pair may be that a job has not tried for such a call yet, to be tried first.
    pub curiosity: f32,
    /// Weight of the estimates' likelihood.
    pub estimate: f32,
    /// Weight of the gain's likelihood.
    pub gain: f32,
}

/// How steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserConfig {
    /// Learning rate, first and last of a stage.
    pub rate: [f32; 2],
    /// Times that a rollout is gone through.
    pub epochs: usize,
    /// Minibatches of one time; each is whole sequences.
    pub minibatches: usize,
    /// Parts of a minibatch that threads work on at once. Part of the result: sums are added shard by shard.
    pub shards: usize,
    /// Share of the learning rate that the memory's own weights get where it starts as a table.
    pub memory: f32,
    /// Longest gradient; a longer one is scaled down as a whole.
    pub longest: f32,
    /// Divergence from the acting policy at which the rest of an update is left out; 0 for never.
    pub divergence: f32,
}

/// How often the agent is judged while it trains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationConfig {
    /// Steps between two judgements.
    pub every: u64,
    /// Worlds of one.
    pub worlds: u32,
    /// Spreads of its expected gain that this must exceed before the policy that is left behind departs from
    /// NCCL's choice.
    pub margin: f32,
}

/// What is taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Without {
    /// The LSTM: decisions see nothing of what it remembers.
    pub lstm: bool,
    /// The anchor on NCCL's prediction.
    pub anchor: bool,
    /// Experts of their own for each role: all share one.
    pub experts: bool,
    /// Feedback: nobody is told what a call took.
    pub feedback: bool,
    /// The curriculum: the last stage from the beginning, with the steps of all.
    pub curriculum: bool,
    /// Features that the network does not see, by name.
    pub features: Vec<String>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        let Shape { embedding, memory, expert, resource } = Shape::default();
        NetworkConfig { embedding, memory, expert, resource, critic: 64, table: true }
    }
}

impl NetworkConfig {
    /// The widths that end up in a policy.
    pub fn shape(&self) -> Shape {
        let NetworkConfig { embedding, memory, expert, resource, .. } = *self;
        Shape { embedding, memory, expert, resource }
    }
}

impl Default for RolloutConfig {
    fn default() -> Self {
        RolloutConfig {
            environments: 64,
            steps: 64,
            discount: 0.9,
            trace: 0.9,
            held: 0.5,
            lesson: 8,
            calls: 256,
            greedy: 0.5,
            refresh: 16,
            hindsight: 0.5,
        }
    }
}

impl Default for LossConfig {
    fn default() -> Self {
        LossConfig {
            policy: 1.0,
            clip: [0.2, 0.1],
            value: 0.5,
            value_clip: 0.2,
            entropy: [0.05, 0.005],
            entropy_heads: [1.0; HEADS],
            worth: 30.0,
            hindsight: 3.0,
            resources: 3.0,
            temperature: 0.05,
            curiosity: 0.1,
            estimate: 0.3,
            gain: 0.3,
        }
    }
}

impl Default for OptimiserConfig {
    fn default() -> Self {
        OptimiserConfig {
            rate: [2e-3, 1e-4],
            epochs: 2,
            minibatches: 4,
            shards: 4,
            memory: 0.05,
            longest: 0.5,
            divergence: 0.03,
        }
    }
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        EvaluationConfig { every: 500_000, worlds: 3, margin: -1.0 }
    }
}
