//! Photonic rails: when circuits change, and which calls take another way.
//!
//! A policy is judged on the deep pipelines of `docs/reconfiguration.md`, whose windows vary, beside the paper's rule
//! and whatever needs no learning.

use std::sync::Arc;

use dynamiccl_env::curriculum::{Kind, Promotion};
use dynamiccl_env::gym::{Dressed, seed_of};
use dynamiccl_env::rails::{
    Always, Controller, Fabric, Greedy, Iterations, Jitter, Job, RailsEnv, RailsStage, Timing, judge,
    paper_recipe,
};
use dynamiccl_policies::network::Weights;
use dynamiccl_spec::GateSet;
use serde::Serialize;

use super::actor::Actor;
use super::{Figures, Look, StageSettings, Stop, Subject, Verdict, usual, with_mean};
use crate::config::Config;
use crate::error::TrainError;

/// Stages, and 10⁹ operations that a GPU sustains in a second, of the jobs that a policy is judged on.
const JOBS: [(u32, f64); 3] = [(4, 40_000.0), (8, 30_000.0), (16, 20_300.0)];
/// µs until circuits have changed.
pub const DELAY: f64 = 100e3;
/// How much windows vary.
pub const JITTER: Jitter = Jitter { compute: 0.05, surprise: 0.1 };
/// Iterations of a repetition.
const ITERATIONS: usize = 4;

/// Who is judged.
const JUDGED: usize = 4;

/// A curriculum of photonic rails.
#[derive(Debug)]
pub struct Rails {
    name: String,
    stage: Arc<RailsStage>,
    usual: Config,
}

/// What everybody adds to an iteration of one job, in %.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RailsCell {
    /// Pipeline stages.
    pub pp: u32,
    /// The paper's rule.
    pub provisioned: f64,
    /// Ports that are split and never change.
    pub static_split: f64,
    /// The path that delays least by a rule of thumb.
    pub greedy: f64,
    /// The policy.
    pub learned: f64,
}

/// What a judgement finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RailsVerdict {
    /// By job.
    pub cells: Vec<RailsCell>,
}

impl Rails {
    /// An error where the file's words about the agent are none.
    pub fn new(name: &str, stage: RailsStage) -> Result<Self, TrainError> {
        let usual = usual(name, &stage.agent)?;
        Ok(Rails { name: name.to_owned(), stage: Arc::new(stage), usual })
    }

    /// Steps that a judgement in so many worlds tells of: each is drawn, then met by everybody and the baseline.
    pub fn steps(worlds: u32) -> u64 {
        (JOBS.len() * (1 + 1 + JUDGED)) as u64 * u64::from(worlds)
    }

    /// Pipeline stages of the jobs that policies are judged on.
    pub fn depths() -> impl Iterator<Item = u32> {
        JOBS.into_iter().map(|(pp, _)| pp)
    }
}

impl Subject for Rails {
    type Stage = (String, Arc<RailsStage>);
    type Env = Dressed<RailsEnv>;
    type Verdict = RailsVerdict;

    const KIND: Kind = Kind::Rails;
    const WATCHED: &'static str = "increase";

    fn stages(&self) -> Vec<Self::Stage> {
        vec![(self.name.clone(), Arc::clone(&self.stage))]
    }

    fn name(stage: &Self::Stage) -> &str {
        &stage.0
    }

    fn promotion(stage: &Self::Stage) -> Promotion {
        Promotion { regret: 0.0, min_steps: 0, max_steps: stage.1.steps }
    }

    fn usual(&self) -> Config {
        self.usual.clone()
    }

    fn settings(&self) -> Vec<StageSettings> {
        vec![StageSettings::new(&self.name, &self.stage, &*self.stage)]
    }

    fn surroundings(&self) -> (Vec<String>, GateSet) {
        Default::default()
    }

    fn make(&self, stages: &[Self::Stage], _: &Config) -> impl Fn() -> Dressed<RailsEnv> {
        let stage = Arc::clone(&stages[0].1);
        move || Dressed::new(RailsEnv::new(Arc::clone(&stage))).expect("it fits")
    }

    fn judge<E: Stop>(
        &self,
        _: &Self::Stage,
        weights: &Weights,
        look: &Look<'_>,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<RailsVerdict, E> {
        let of = |&(pp, gflops): &(u32, f64)| cell(pp, gflops, weights, look, &step);
        Ok(RailsVerdict { cells: JOBS.iter().map(of).collect::<Result<_, E>>()? })
    }
}

fn cell<E>(
    pp: u32,
    gflops: f64,
    weights: &Weights,
    look: &Look<'_>,
    step: impl Fn(u64) -> Result<(), E>,
) -> Result<RailsCell, E> {
    let timing = Timing { flops_per_us: gflops * 1e3, ..Timing::default() };
    let fabric = Fabric::default().with_delay(DELAY);
    let job = Job::new(paper_recipe(pp, 2, pp), timing, fabric).expect("a job of the paper's form");
    let draw = |at| {
        let iterations = Iterations::draw(&job, ITERATIONS, &JITTER, seed_of(look.seed, at as usize));
        step(1).map(|()| iterations)
    };
    let repetitions: Vec<Iterations> = (0..look.worlds).map(draw).collect::<Result<_, E>>()?;
    let (mut rule, mut split, mut policy) =
        (Always::PROVISIONED, Always::STATIC_SPLIT, Actor::rails(weights));
    let mut all: [&mut dyn Controller; JUDGED] = [&mut rule, &mut split, &mut Greedy, &mut policy];
    let results = judge(&job, &repetitions, &mut all, || step(1))?.1;
    let [provisioned, static_split, greedy, learned] = [0, 1, 2, 3].map(|at: usize| results[at].increase);
    Ok(RailsCell { pp, provisioned, static_split, greedy, learned })
}

impl RailsVerdict {
    fn of(&self, figure: impl Fn(&RailsCell) -> f64) -> super::ByPlace {
        with_mean(self.cells.iter().map(|cell| (format!("pp{}", cell.pp), figure(cell))))
    }
}

impl Verdict for RailsVerdict {
    fn score(&self) -> f64 {
        self.regret()
    }

    fn regret(&self) -> f64 {
        self.of(|cell| cell.learned / 100.0)["all"]
    }

    fn figures(&self) -> Figures {
        Figures::from([
            (Rails::WATCHED, self.of(|cell| cell.learned / 100.0)),
            ("provisioned", self.of(|cell| cell.provisioned / 100.0)),
            ("static_split", self.of(|cell| cell.static_split / 100.0)),
            ("greedy", self.of(|cell| cell.greedy / 100.0)),
        ])
    }
}
