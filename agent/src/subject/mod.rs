//! What is learned: environments stage by stage, and what judges a policy that acts in them.
//!
//! A trainer, a run and its records are the same whatever is learned; all that differs is here. Nothing here knows how
//! a policy learns or where its figures are written.

pub mod actor;
mod knobs;
pub mod map;
pub mod rails;
mod stage;
pub mod wan;

use std::collections::BTreeMap;
use std::fmt::Debug;

use dynamiccl_env::cluster::ClusterError;
use dynamiccl_env::curriculum::{Curriculum, CurriculumError, Kind, Promotion};
use dynamiccl_env::rails::RailsStage;
use dynamiccl_env::wan::WanCurriculum;
use dynamiccl_policies::network::Weights;
use dynamiccl_spec::GateSet;
use dynamiccl_spec::words::look_up;

pub use knobs::Knobs;
pub use rails::{Rails, RailsCell, RailsVerdict};
pub use stage::StageSettings;
pub use wan::{Wan, WanCell, WanVerdict};

use crate::config::Config;
use crate::error::TrainError;
use crate::rollout::Trainable;
use map::Maps;

/// One figure by place: `tier1`, `rho0.95`, `pp8`, and `all` over all of them.
pub type ByPlace = BTreeMap<String, f64>;

/// Figures by name.
pub type Figures = BTreeMap<&'static str, ByPlace>;

/// What a curriculum is about, by its name or from a file ending in `.toml`.
pub fn kind_of(curriculum: &str) -> Result<Kind, CurriculumError> {
    if let Some(kind) = Kind::stated(curriculum)? {
        return Ok(kind);
    }
    let knobs = Curriculum::names().map(|name| (name, Kind::Knobs));
    let wan = WanCurriculum::names().map(|name| (name, Kind::Wan));
    let known: Vec<_> = knobs.chain(wan).chain([(RailsStage::NAME, Kind::Rails)]).collect();
    look_up("curriculum", curriculum, &known).map_err(CurriculumError::Name)
}

/// What is learned.
pub trait Subject: Debug {
    /// A stage of it.
    type Stage: Clone + Debug;
    /// The environment of a policy.
    type Env: Trainable;
    /// What a judgement finds.
    type Verdict: Verdict;

    /// What its curricula are about.
    const KIND: Kind;

    /// The figure of a judgement that people watch: every line of a run repeats it.
    const WATCHED: &'static str;

    /// Its stages, in the order in which they are learned.
    fn stages(&self) -> Vec<Self::Stage>;

    /// The name of a stage.
    fn name(stage: &Self::Stage) -> &str;

    /// When a stage ends.
    fn promotion(stage: &Self::Stage) -> Promotion;

    /// How an agent is trained where nobody says.
    fn usual(&self) -> Config;

    /// The stages as they are now, to be kept beside a run.
    fn settings(&self) -> Vec<StageSettings>;

    /// The releases of NCCL that a policy is for, and the gates that stand before it.
    fn surroundings(&self) -> (Vec<String>, GateSet);

    /// Makes environments with jobs from these stages.
    fn make(&self, stages: &[Self::Stage], config: &Config) -> impl Fn() -> Self::Env;

    /// Judges a policy on a stage; `step` is told how far that is and stops with its error.
    fn judge<E: Stop>(
        &self,
        stage: &Self::Stage,
        weights: &Weights,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<Self::Verdict, E>;

    /// Machines of a stage whose decisions can be drawn.
    fn maps(_: &Self::Stage) -> Option<Maps> {
        None
    }
}

/// What can end a judgement: errors of its own, and whatever else somebody wants to stop it with.
pub trait Stop: Send + From<TrainError> + From<ClusterError> {}

impl<E: Send + From<TrainError> + From<ClusterError>> Stop for E {}

/// How closely a policy is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// How it is trained.
    pub config: &'a Config,
    /// The seed of what it meets.
    pub seed: u64,
    /// How much of that.
    pub worlds: u32,
    /// Threads to work on; they change nothing but the time.
    pub threads: usize,
}

/// What a judgement has found.
pub trait Verdict: Debug {
    /// What decides which policy of a stage is kept; less is better.
    fn score(&self) -> f64;

    /// What a stage's bar is about.
    fn regret(&self) -> f64;

    /// All figures.
    fn figures(&self) -> Figures;
}

/// Figures of many places in one table, with their mean over all of them.
fn with_mean(places: impl Iterator<Item = (String, f64)>) -> ByPlace {
    let mut figures: ByPlace = places.collect();
    let mean = figures.values().sum::<f64>() / figures.len().max(1) as f64;
    figures.insert("all".to_owned(), mean);
    figures
}

/// How an agent is trained on a curriculum whose file says what is not as usual.
fn usual(file: &str, agent: &toml::Table) -> Result<Config, TrainError> {
    let wrong = |why: toml::de::Error| TrainError::Agent { file: file.to_owned(), why: why.to_string() };
    agent.clone().try_into().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_file_says_what_it_is_about() {
        assert_eq!(kind_of("smoke").unwrap(), Kind::Knobs);
        assert_eq!((kind_of("wan").unwrap(), kind_of("rails").unwrap()), (Kind::Wan, Kind::Rails));
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../curricula");
        for (name, kind) in [("stage1", Kind::Knobs), ("wan", Kind::Wan), ("rails", Kind::Rails)] {
            assert_eq!(kind_of(&format!("{root}/{name}.toml")).unwrap(), kind);
        }
        let message = kind_of("rials").unwrap_err().to_string();
        assert!(message.contains("did you mean \"rails\""), "{message}");
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), "kind = \"wam\"").unwrap();
        let message = kind_of(file.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(message.contains("did you mean \"wan\"") && message.contains(".toml: "), "{message}");
    }
}
