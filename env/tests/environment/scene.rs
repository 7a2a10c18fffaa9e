//! A job made by hand, and what is seen when it runs.

use std::sync::Arc;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::curriculum::{Curriculum, Stage};
use dynamiccl_env::gym::{Action, Env, Observation};
use dynamiccl_env::job::{Job, Setting, Shown, Source, Traced, flops_per_us};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::nccl::Realised;
use dynamiccl_env::sim_env::{CallReport, SimEnv, SimInfo};
use dynamiccl_env::workload::{Layout, ModelShape, Placement, Planned, Recipe, iteration};
use dynamiccl_spec::{Choice, Collective, Role};

use crate::schedules::Quick;

pub const MIB: u64 = 1 << 20;
/// Calls whose settings are all timed; later ones run with the first legal choice.
const ORACLE: usize = 100;

/// A job and the stage that judges it.
#[derive(Clone)]
pub struct Scene {
    pub job: Job,
    pub stage: Stage,
}

/// What one call looked like and came to.
pub struct Seen {
    /// What was observed before it.
    pub observation: Observation,
    /// What came of it.
    pub report: CallReport,
    /// Its reward.
    pub reward: f64,
    /// The whole info after it.
    pub info: SimInfo,
    /// The fastest setting, where one was asked for.
    pub best: Option<Realised>,
}

/// A calm stage: no load, no drift, no faults, no stragglers, no congestion.
pub fn calm() -> Stage {
    let mut stage = (*Curriculum::load("smoke").unwrap().stages[0]).clone();
    let dynamics = &mut stage.file.dynamics;
    (dynamics.load, dynamics.drift, dynamics.congestion) = (0.0, 0.0, 0.0);
    (dynamics.stragglers, dynamics.faults) = (0.0, 0.0);
    stage.file.workload.calls = 10_000;
    stage
}

/// The same call over and over on whole nodes of a cluster.
pub fn repeated(cluster: &str, nodes: u32, call: Planned) -> Scene {
    repeated_on(Arc::new(Cluster::load(cluster).unwrap()), nodes, call)
}

/// The same on a cluster that is there already.
pub fn repeated_on(cluster: Arc<Cluster>, nodes: u32, call: Planned) -> Scene {
    let ranks_per_node = cluster.gpus_per_node;
    let placements = vec![Placement { nodes, ranks_per_node, siblings: 1 }];
    let traced = Traced { placements, calls: vec![(0, call); 4000] };
    Scene { job: on(cluster, nodes, Source::Trace(Arc::new(traced))), stage: calm() }
}

/// An allreduce of 1 MiB on two nodes, over and over.
pub fn allreduce() -> Scene {
    repeated("dgx_h100", 2, Planned::alone(Collective::AllReduce, MIB, Role::IntraStage))
}

/// One rank of a training job.
pub fn training(model: &str, layout: Layout, cluster: &str, change: impl FnOnce(&mut Recipe)) -> Scene {
    let cluster = Arc::new(Cluster::load(cluster).unwrap());
    let mut recipe = Recipe::new(ModelShape::preset(model).unwrap(), layout);
    change(&mut recipe);
    let nodes = layout.ranks().div_ceil(cluster.gpus_per_node);
    let program = iteration(&recipe, 0, true, flops_per_us(cluster.gpu.sm)).unwrap();
    let source =
        Source::Training { recipe: Box::new(recipe), stage: 0, iterations: 100, program: Arc::new(program) };
    Scene { job: on(cluster, nodes, source), stage: calm() }
}

fn on(cluster: Arc<Cluster>, nodes: u32, source: Source) -> Job {
    let (setting, shown, feedback_every) = (Setting::default(), Shown::ALL, Some(1));
    Job { cluster, nodes, source, setting, shown, feedback_every, world: 0 }
}

impl Scene {
    /// The same with another setting.
    pub fn with(mut self, change: impl FnOnce(&mut Setting)) -> Scene {
        change(&mut self.job.setting);
        self
    }

    /// The same in other weather.
    pub fn amid(mut self, change: impl FnOnce(&mut Stage)) -> Scene {
        change(&mut self.stage);
        self
    }

    pub fn env(&self) -> SimEnv {
        let constants = Arc::new(ConstantsFile::full());
        // Only a job with a runtime for it is offered the schedule.
        SimEnv::of_job(self.job.clone(), &self.stage, constants).with_schedules(Arc::new(Quick(20.0)))
    }

    /// Runs some calls with NCCL's own choices.
    pub fn run(&self, seed: u64, calls: usize) -> Vec<Seen> {
        self.act(seed, calls, |_, _, own| own)
    }

    /// Runs some calls; `choose` gets the number of the call, what is seen, and NCCL's own choice.
    pub fn act(
        &self,
        seed: u64,
        calls: usize,
        choose: impl Fn(usize, &Observation, Action) -> Action,
    ) -> Vec<Seen> {
        let mut env = self.env();
        let mut observation = Observation::new(env.spaces());
        env.reset(Some(seed), &mut observation).unwrap();
        let mut seen = Vec::new();
        for call in 0..calls {
            let settings = if call < ORACLE { env.settings() } else { Vec::new() };
            let best = settings.iter().min_by(|a, b| a.micros.total_cmp(&b.micros)).map(|best| best.realised);
            let first = observation.mask.map(|bits| bits.trailing_zeros().min(31) as u8);
            let own = settings.first().map_or(first, |own| Choice::of(&own.knobs, own.realised.pair).0);
            let own = Action { choice: own, exploratory: false };
            let before = observation.clone();
            let step = env.step(&choose(call, &before, own), &mut observation).unwrap();
            let report = step.info.last.unwrap();
            seen.push(Seen { observation: before, report, reward: step.reward, info: step.info, best });
            if step.terminated || step.truncated {
                break;
            }
        }
        seen
    }
}
