//! Which settings make sense: a run that cannot work is refused before it begins.

use dynamiccl_policies::network::Shape;

use crate::config::{Config, EvaluationConfig, LossConfig, NetworkConfig, OptimiserConfig, RolloutConfig};
use crate::memory_table;

/// A setting that no run can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field} is {value}; {expected}")]
pub struct ConfigError {
    /// Which.
    pub field: &'static str,
    /// What it is.
    pub value: String,
    /// What it could be.
    pub expected: &'static str,
}

impl Config {
    /// Makes sure that a run can be trained like this.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.network.check()?;
        self.rollout.check()?;
        self.loss.check()?;
        self.optimiser.check(self.rollout.environments)?;
        self.evaluation.check()
    }
}

impl NetworkConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let NetworkConfig { embedding, memory, expert, resource, critic, table } = *self;
        let wide = |width: &usize| width.is_multiple_of(Shape::GRAIN) && (1..=Shape::WIDEST).contains(width);
        let expected = "give a multiple of 8 up to 1024";
        hold("network.embedding", embedding, wide, expected)?;
        hold("network.memory", memory, wide, expected)?;
        hold("network.expert", expert, wide, expected)?;
        hold("network.resource", resource, wide, expected)?;
        hold("network.critic", critic, |&width| (1..=4096).contains(&width), "give 1 to 4096")?;
        let fits = |&table: &bool| !table || memory_table::fits(&self.shape());
        hold("network.table", table, fits, "give false, or an embedding of 16 and a memory of 200 at least")
    }
}

impl RolloutConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let RolloutConfig {
            environments,
            steps,
            discount,
            trace,
            held,
            lesson,
            calls,
            greedy,
            refresh,
            hindsight,
        } = *self;
        hold("rollout.environments", environments, |&n| (1..=1 << 16).contains(&n), "give 1 to 65536")?;
        hold("rollout.steps", steps, |&n| (1..=1 << 12).contains(&n), "give 1 to 4096")?;
        hold("rollout.discount", discount, share, SHARE)?;
        hold("rollout.trace", trace, share, SHARE)?;
        hold("rollout.held", held, share, SHARE)?;
        hold("rollout.lesson", lesson, |&calls| calls > 0, "give 1 or more calls")?;
        hold("rollout.calls", calls, |&calls| calls > 0, "give 1 or more calls")?;
        hold("rollout.greedy", greedy, share, SHARE)?;
        hold("rollout.refresh", refresh, |&calls| calls > 0, "give 1 or more calls")?;
        hold("rollout.hindsight", hindsight, share, SHARE)
    }
}

impl LossConfig {
    fn check(&self) -> Result<(), ConfigError> {
        hold("loss.policy", self.policy, weight, WEIGHT)?;
        hold("loss.clip", self.clip, |clip| clip.iter().all(above), ABOVE)?;
        hold("loss.value", self.value, weight, WEIGHT)?;
        hold("loss.value_clip", self.value_clip, weight, WEIGHT)?;
        hold("loss.entropy", self.entropy, |ends| ends.iter().all(weight), WEIGHT)?;
        hold("loss.entropy_heads", self.entropy_heads, |heads| heads.iter().all(weight), WEIGHT)?;
        hold("loss.hindsight", self.hindsight, weight, WEIGHT)?;
        hold("loss.temperature", self.temperature, above, ABOVE)?;
        hold("loss.worth", self.worth, weight, WEIGHT)?;
        hold("loss.resources", self.resources, weight, WEIGHT)?;
        hold("loss.curiosity", self.curiosity, weight, WEIGHT)?;
        hold("loss.estimate", self.estimate, weight, WEIGHT)?;
        hold("loss.gain", self.gain, weight, WEIGHT)
    }
}

impl OptimiserConfig {
    fn check(&self, environments: usize) -> Result<(), ConfigError> {
        let fits = |parts: &usize| (1..=environments).contains(parts);
        let within = "give 1 up to rollout.environments";
        hold("optimiser.rate", self.rate, |ends| ends.iter().all(above), ABOVE)?;
        hold("optimiser.epochs", self.epochs, |&epochs| epochs > 0, "give 1 or more")?;
        hold("optimiser.minibatches", self.minibatches, fits, within)?;
        hold("optimiser.shards", self.shards, |&shards| shards > 0, "give 1 or more")?;
        hold("optimiser.memory", self.memory, share, SHARE)?;
        hold("optimiser.longest", self.longest, above, ABOVE)?;
        hold("optimiser.divergence", self.divergence, weight, WEIGHT)
    }
}

impl EvaluationConfig {
    fn check(&self) -> Result<(), ConfigError> {
        hold("evaluation.every", self.every, |&steps| steps > 0, "give 1 or more steps")?;
        hold("evaluation.worlds", self.worlds, |&worlds| worlds > 0, "give 1 or more")?;
        hold("evaluation.margin", self.margin, |margin| margin.is_finite(), "give a finite number")
    }
}

const SHARE: &str = "give a number from 0 to 1";
const WEIGHT: &str = "give numbers from 0 on";
const ABOVE: &str = "give numbers above 0";

fn share(x: &f32) -> bool {
    (0.0..=1.0).contains(x)
}

fn weight(x: &f32) -> bool {
    x.is_finite() && *x >= 0.0
}

fn above(x: &f32) -> bool {
    x.is_finite() && *x > 0.0
}

fn hold<T: std::fmt::Debug>(
    field: &'static str,
    value: T,
    fits: impl Fn(&T) -> bool,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if fits(&value) { Ok(()) } else { Err(ConfigError { field, value: format!("{value:?}"), expected }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_makes_sense_and_nonsense_is_named() {
        assert_eq!(Config::default().check(), Ok(()));
        let narrow = NetworkConfig { embedding: 16, memory: 200, ..NetworkConfig::default() };
        assert_eq!(Config { network: narrow, ..Config::default() }.check(), Ok(()));
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(
            refused(|c| c.network.memory = 192),
            "network.table is true; give false, or an embedding of 16 and a memory of 200 at least"
        );
        assert_eq!(
            refused(|c| c.network.memory = 12),
            "network.memory is 12; give a multiple of 8 up to 1024"
        );
        assert_eq!(refused(|c| c.rollout.steps = 0), "rollout.steps is 0; give 1 to 4096");
        assert_eq!(refused(|c| c.loss.clip[1] = -0.1), "loss.clip is [0.2, -0.1]; give numbers above 0");
        assert_eq!(refused(|c| c.rollout.held = f32::NAN), "rollout.held is NaN; give a number from 0 to 1");
        let many = refused(|c| c.optimiser.minibatches = 65);
        assert_eq!(many, "optimiser.minibatches is 65; give 1 up to rollout.environments");
    }
}
