//! Which jobs a controller is trained on: a distribution over degrees, switches and how much windows vary.

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::error::RailsError;
use super::fabric::{Fabric, Link};
use super::job::{Job, paper_recipe};
use super::timing::{Jitter, Timing};
use crate::curriculum::{Kind, Mix};
use crate::text;
use crate::workload::{ModelShape, Recipe};
use crate::world::draw::{LogUniform, uniform};

/// The curriculum that comes with the program.
const BUILTIN: &str = include_str!("../../../curricula/rails.toml");
/// Version of the file's schema.
const SCHEMA: u32 = 1;

/// A distribution over jobs, as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RailsStage {
    /// Version of the schema.
    pub schema: u32,
    /// What it is about: `rails`.
    pub kind: Kind,
    /// One line for people.
    pub description: String,
    /// Iterations of an episode.
    pub iterations: u32,
    /// What a port that changes costs, as a share of an iteration.
    pub reconfiguration: f64,
    /// Jobs.
    pub job: Jobs,
    /// Networks.
    pub network: Networks,
    /// Smallest and largest of what varies.
    pub jitter: Jitters,
    /// Steps of a training.
    pub steps: u64,
    /// How an agent is trained on it, where that is not as usual; what it means is the agent's business.
    #[serde(default)]
    pub agent: toml::Table,
}

/// Jobs that are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Models, by name.
    pub models: Mix<String>,
    /// Pipeline stages.
    pub pp: Mix<u32>,
    /// Ranks that share the parameters of a stage.
    pub fsdp: Mix<u32>,
    /// Micro-batches for each stage.
    pub micro_batches_per_stage: Mix<u32>,
    /// 10⁹ floating-point operations that a GPU sustains in a second.
    pub gflops: Mix<u32>,
}

/// Networks that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Networks {
    /// Shortest and longest delay of the switches in ms, each octave as likely.
    pub delay_ms: [f64; 2],
    /// A whole port on a rail.
    pub rail: Link,
    /// A GPU's share of the hosts' packet network.
    pub host: Link,
}

/// How much iterations vary, from and to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitters {
    /// Standard deviation of a piece of compute, as a share of it.
    pub compute: [f64; 2],
    /// Chance that a stage makes a call in an iteration that the profile does not hold.
    pub surprise: [f64; 2],
}

/// What tells one job of a stage from another, but for its delay.
pub(super) type Key = (String, u32, u32, u32, u32);

impl RailsStage {
    /// What the curriculum that comes with the program is called.
    pub const NAME: &str = "rails";

    /// The curriculum that comes with the program.
    pub fn builtin() -> RailsStage {
        parse(Self::NAME, BUILTIN).expect("the curriculum that comes with the program")
    }

    /// A curriculum from a file ending in `.toml`, or the one called `rails`.
    pub fn load(name: &str) -> Result<RailsStage, RailsError> {
        if name == Self::NAME {
            return Ok(RailsStage::builtin());
        }
        let wrong = |why: String| RailsError::File { file: name.to_owned(), why };
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(wrong(
                "the only curriculum of photonic rails is \"rails\"; name a .toml file".into(),
            ));
        }
        let text = text::read(name).map_err(|error| wrong(error.to_string()))?;
        parse(name, &text)
    }

    /// Draws what tells a job from others, then its delay in µs and how much it varies.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> (Key, f64, Jitter) {
        let jobs = &self.job;
        let model = jobs.models.draw(rng).clone();
        let (pp, fsdp) = (*jobs.pp.draw(rng), *jobs.fsdp.draw(rng));
        let micro_batches = pp * *jobs.micro_batches_per_stage.draw(rng);
        let gflops = *jobs.gflops.draw(rng);
        let delay = LogUniform::default().draw(rng, self.network.delay_ms) * 1e3;
        let mut between = |[low, high]: [f64; 2]| low + (high - low) * uniform(rng);
        let jitter =
            Jitter { compute: between(self.jitter.compute), surprise: between(self.jitter.surprise) };
        ((model, pp, fsdp, micro_batches, gflops), delay, jitter)
    }

    /// The job that is told from others so, with switches that take no time.
    pub(super) fn job(&self, key: &Key) -> Result<Job, RailsError> {
        let (model, pp, fsdp, micro_batches, gflops) = key;
        let paper = paper_recipe(*pp, *fsdp, *micro_batches);
        let mut shape = ModelShape::preset(model)?;
        shape.sequence = paper.model.sequence;
        let recipe = Recipe { model: shape, ..paper };
        let timing = Timing { flops_per_us: f64::from(*gflops) * 1e3, ..Timing::default() };
        let Networks { rail, host, .. } = self.network;
        Job::new(recipe, timing, Fabric { rail, host, ..Fabric::default() })
    }

    fn check(&self) -> Result<(), RailsError> {
        if self.schema != SCHEMA {
            return Err(RailsError::value("schema", self.schema, format!("this program reads {SCHEMA}")));
        }
        if self.kind != Kind::Rails {
            return Err(RailsError::value("kind", self.kind, "give \"rails\""));
        }
        if self.steps == 0 {
            return Err(RailsError::value("steps", 0, "give at least 1"));
        }
        if !(1..=1000).contains(&self.iterations) {
            return Err(RailsError::value("iterations", self.iterations, "give 1 to 1000"));
        }
        if !(0.0..=1.0).contains(&self.reconfiguration) {
            return Err(RailsError::value("reconfiguration", self.reconfiguration, "give 0 to 1"));
        }
        let [low, high] = self.network.delay_ms;
        if !(1e-6 <= low && low <= high && high <= 1e6) {
            let given = format!("[{low}, {high}]");
            return Err(RailsError::value("delay_ms", given, "give two numbers above 0, the smaller first"));
        }
        for at in [0, 1] {
            Jitter { compute: self.jitter.compute[at], surprise: self.jitter.surprise[at] }.check()?;
        }
        self.check_jobs()
    }

    /// Builds every job of the smallest and the largest of all numbers, so that a wrong file fails at once.
    fn check_jobs(&self) -> Result<(), RailsError> {
        for key in self.extremes()? {
            let (_, pp, fsdp, ..) = key;
            if self.job(&key)?.profile.windows.is_empty() {
                let remedy = format!("with fsdp = {fsdp} circuits never change; give both 2 or more");
                return Err(RailsError::value("pp", pp, remedy));
            }
        }
        Ok(())
    }

    /// The smallest and the largest of all numbers with each other.
    fn extremes(&self) -> Result<Vec<Key>, RailsError> {
        let jobs = &self.job;
        let mut keys = Vec::new();
        for (model, _) in jobs.models.iter() {
            for pp in ends(&jobs.pp) {
                for each in ends(&jobs.micro_batches_per_stage) {
                    let micro_batches = pp.checked_mul(each).ok_or_else(|| {
                        RailsError::value("micro_batches_per_stage", each, "give fewer, or fewer stages")
                    })?;
                    for fsdp in ends(&jobs.fsdp) {
                        for gflops in ends(&jobs.gflops) {
                            keys.push((model.clone(), pp, fsdp, micro_batches, gflops));
                        }
                    }
                }
            }
        }
        Ok(keys)
    }
}

/// The least and the most that can come; one where they are the same.
fn ends(mix: &Mix<u32>) -> Vec<u32> {
    let numbers = || mix.iter().map(|(number, _)| *number);
    let mut ends: Vec<u32> = numbers().min().into_iter().chain(numbers().max()).collect();
    ends.dedup();
    ends
}

fn parse(name: &str, text: &str) -> Result<RailsStage, RailsError> {
    let wrong = |why: String| RailsError::File { file: name.to_owned(), why };
    let stage: RailsStage = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    stage.check().map_err(|error| wrong(error.to_string()))?;
    Ok(stage)
}
