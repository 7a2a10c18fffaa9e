//! Rings across datacentres: when to keep, reroute or rebuild.
//!
//! A policy is judged in the study's own network, at every correlation that it meets in training, beside cadences and
//! triggers at their best and beside the least that any plan could have cost. Those do not depend on the policy and are
//! worked out once.

use std::sync::{Arc, OnceLock};

use dynamiccl_env::curriculum::{Kind, Promotion};
use dynamiccl_env::gym::Dressed;
use dynamiccl_env::threads::each;
use dynamiccl_env::wan::compare::{Comparison, Courses};
use dynamiccl_env::wan::control::Controller;
use dynamiccl_env::wan::{Costs, Network, Setting, WanCurriculum, WanEnv};
use dynamiccl_policies::network::Weights;
use dynamiccl_spec::GateSet;
use serde::Serialize;

use super::actor::Actor;
use super::{Figures, Look, StageSettings, Stop, Subject, Verdict, usual, with_mean};
use crate::config::Config;
use crate::error::TrainError;

/// GPUs of a datacentre, and routers, where a policy is judged.
const STUDY: [usize; 2] = [4, 2];
/// What changes cost there.
pub const COSTS: Costs = Costs { rebuild_ms: 100.0, reroute_ms: 5.0 };
/// Collectives of a trace.
const COLLECTIVES: usize = 500;

/// A curriculum of rings across datacentres.
#[derive(Debug)]
pub struct Wan {
    curriculum: Arc<WanCurriculum>,
    usual: Config,
    /// What all policies are judged beside while they train.
    validation: OnceLock<(Yardsticks, u64, u32)>,
}

/// What policies are judged beside, by correlation.
type Yardsticks = Vec<Yardstick>;

#[derive(Debug)]
struct Yardstick {
    setting: Setting,
    rho: f64,
    courses: Courses,
    others: WanCell,
}

/// What everybody came to at one correlation, in mean ms of a collective with costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct WanCell {
    /// The correlation of the traffic.
    pub rho: f64,
    /// The best cadence.
    pub best_cadence: f64,
    /// The best trigger.
    pub threshold: f64,
    /// The policy.
    pub learned: f64,
    /// The least that any plan could have cost.
    pub clairvoyant: f64,
}

/// What a judgement finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WanVerdict {
    /// By correlation.
    pub cells: Vec<WanCell>,
}

impl Wan {
    /// An error where the file's words about the agent are none.
    pub fn new(curriculum: WanCurriculum) -> Result<Self, TrainError> {
        let usual = usual(&curriculum.name, &curriculum.file.agent)?;
        Ok(Wan { curriculum: Arc::new(curriculum), usual, validation: OnceLock::new() })
    }

    /// Steps that a judgement in so many worlds that nobody was judged in yet tells of: collectives.
    pub fn steps(&self, worlds: u32) -> u64 {
        // Traffic to tune on, traffic to judge on, and the clairvoyant.
        3 * (self.curriculum.file.rho.iter().count() * COLLECTIVES) as u64 * u64::from(worlds)
    }

    fn yardsticks<E: Send>(
        &self,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<Yardsticks, E> {
        let mut rhos: Vec<f64> = self.curriculum.file.rho.iter().map(|(rho, _)| *rho).collect();
        rhos.sort_by(f64::total_cmp);
        each(look.threads, &mut rhos, |_, rho| Yardstick::new(*rho, look, &step)).into_iter().collect()
    }

    /// What policies are judged beside while they train, worked out the first time.
    fn validation<E: Send>(
        &self,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<&(Yardsticks, u64, u32), E> {
        if let Some(known) = self.validation.get() {
            return Ok(known);
        }
        let new = (self.yardsticks(look, step)?, look.seed, look.worlds);
        Ok(self.validation.get_or_init(|| new))
    }
}

impl Yardstick {
    fn new<E: Send>(
        rho: f64,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let [gpus, routers] = STUDY;
        let network = Network::even(2, gpus, routers).expect("the study's network");
        let setting = Setting::new(network).expect("an allgather goes round every ring");
        let comparison = comparison(&setting, rho, look);
        let courses = comparison.courses(&step)?;
        let of = |ms: Option<f64>| ms.unwrap_or(f64::INFINITY);
        let judge = |by: &mut dyn Controller| Ok(comparison.judge(&courses, by, &step)?.mean_ms);
        let cadence = comparison.best_cadence(&courses, &step)?;
        let threshold = comparison.best_threshold(&courses, &step)?;
        let known = comparison.clairvoyant(&courses, &step).expect("few enough rings")?;
        let others = WanCell {
            rho,
            best_cadence: of(cadence.map(|mut best| judge(&mut best)).transpose()?),
            threshold: of(threshold.map(|mut best| judge(&mut best)).transpose()?),
            learned: 0.0,
            clairvoyant: known.mean_ms,
        };
        Ok(Yardstick { rho, courses, others, setting })
    }

    fn judge<E>(
        &self,
        weights: &Weights,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E>,
    ) -> Result<WanCell, E> {
        let comparison = comparison(&self.setting, self.rho, look);
        let learned = comparison.judge(&self.courses, &mut Actor::wan(weights), step)?.mean_ms;
        Ok(WanCell { learned, ..self.others })
    }
}

fn comparison<'a>(setting: &'a Setting, rho: f64, look: &Look<'_>) -> Comparison<'a> {
    let (traces, seed) = (look.worlds as usize, look.seed);
    Comparison { setting, costs: COSTS, rho, lag: 0, traces, collectives: COLLECTIVES, seed, threads: 1 }
}

impl Subject for Wan {
    type Stage = Arc<WanCurriculum>;
    type Env = Dressed<WanEnv>;
    type Verdict = WanVerdict;

    const KIND: Kind = Kind::Wan;
    const WATCHED: &'static str = "over_clairvoyant";

    fn stages(&self) -> Vec<Arc<WanCurriculum>> {
        vec![Arc::clone(&self.curriculum)]
    }

    fn name(stage: &Arc<WanCurriculum>) -> &str {
        &stage.name
    }

    fn promotion(stage: &Arc<WanCurriculum>) -> Promotion {
        Promotion { regret: 0.0, min_steps: 0, max_steps: stage.file.steps }
    }

    fn usual(&self) -> Config {
        self.usual.clone()
    }

    fn settings(&self) -> Vec<StageSettings> {
        vec![StageSettings::new(&self.curriculum.name, &self.curriculum, &self.curriculum.file)]
    }

    fn surroundings(&self) -> (Vec<String>, GateSet) {
        Default::default()
    }

    fn make(&self, stages: &[Arc<WanCurriculum>], _: &Config) -> impl Fn() -> Dressed<WanEnv> {
        let curriculum = Arc::clone(&stages[0]);
        move || Dressed::new(WanEnv::new(Arc::clone(&curriculum))).expect("it fits")
    }

    fn judge<E: Stop>(
        &self,
        _: &Arc<WanCurriculum>,
        weights: &Weights,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<WanVerdict, E> {
        let known = self.validation(look, &step)?;
        let another = (known.1, known.2) != (look.seed, look.worlds);
        let other = another.then(|| self.yardsticks(look, &step)).transpose()?;
        let mut yardsticks: Vec<&Yardstick> = other.as_ref().unwrap_or(&known.0).iter().collect();
        let judge = |_, yardstick: &mut &Yardstick| yardstick.judge(weights, look, &step);
        let cells = each(look.threads, &mut yardsticks, judge).into_iter().collect::<Result<_, E>>()?;
        Ok(WanVerdict { cells })
    }
}

impl WanVerdict {
    fn of(&self, figure: impl Fn(&WanCell) -> f64) -> super::ByPlace {
        with_mean(self.cells.iter().map(|cell| (format!("rho{}", cell.rho), figure(cell))))
    }
}

impl Verdict for WanVerdict {
    fn score(&self) -> f64 {
        self.regret()
    }

    fn regret(&self) -> f64 {
        self.of(|cell| cell.learned / cell.clairvoyant - 1.0)["all"]
    }

    fn figures(&self) -> Figures {
        Figures::from([
            (Wan::WATCHED, self.of(|cell| cell.learned / cell.clairvoyant - 1.0)),
            ("learned_ms", self.of(|cell| cell.learned)),
            ("best_cadence_ms", self.of(|cell| cell.best_cadence)),
            ("threshold_ms", self.of(|cell| cell.threshold)),
            ("clairvoyant_ms", self.of(|cell| cell.clairvoyant)),
        ])
    }
}
