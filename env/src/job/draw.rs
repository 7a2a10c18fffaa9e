//! Drawing a job from a stage.

use std::sync::Arc;

use dynamiccl_spec::{Overrides, Runtime, SyncMode, TopologyClass};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Job, Setting, Shown, Source, flops_per_us, layout};
use crate::cluster::Cluster;
use crate::curriculum::{CurriculumError, Hidden, Regime, Stage};
use crate::workload::{Group, Layout, Recipe, iteration};
use crate::world::draw::{uniform, weighted};

/// Draws after which a stage is said to allow no job.
const TRIES: usize = 200;
/// What users fix most, one of them per such job.
const USUAL_OVERRIDES: [(&str, &str); 5] = [
    ("NCCL_ALGO", "Ring"),
    ("NCCL_PROTO", "Simple"),
    ("NCCL_PROTO", "^LL128"),
    ("NCCL_NTHREADS", "256"),
    ("NCCL_MAX_NCHANNELS", "8"),
];

impl Job {
    /// Draws a job. The same generator gives the same job.
    pub fn draw(stage: &Stage, rng: &mut ChaCha8Rng) -> Result<Job, CurriculumError> {
        let (cluster, nodes) = machine(stage, rng);
        let source = source(stage, &cluster, nodes, rng)?;
        let mut setting = setting(&stage.file.regime, &cluster, nodes, rng);
        let hidden = &stage.file.hidden;
        let shown = shown(hidden, rng);
        let [least, most] = hidden.staleness;
        let every = rng.random_range(least..=most);
        let feedback_every = (uniform(rng) >= hidden.feedback).then_some(every);
        let world = rng.random();
        // Last, and only where a stage says so: others draw the jobs that they always drew.
        if let Some(runtime) = &stage.file.regime.runtime {
            setting.runtime = *runtime.draw(rng);
        }
        Ok(Job { cluster, nodes, source, setting, shown, feedback_every, world })
    }
}

/// A cluster by its weight, and one of its node counts.
fn machine(stage: &Stage, rng: &mut ChaCha8Rng) -> (Arc<Cluster>, u32) {
    let machines: Vec<(usize, Vec<u32>)> = stage.machines().collect();
    let weights = machines.iter().map(|(at, _)| stage.file.clusters[*at].weight);
    let (at, nodes) = &machines[weighted(rng, weights)];
    (Arc::clone(&stage.clusters[*at]), nodes[rng.random_range(0..nodes.len())])
}

fn source(
    stage: &Stage,
    cluster: &Cluster,
    nodes: u32,
    rng: &mut ChaCha8Rng,
) -> Result<Source, CurriculumError> {
    let workload = &stage.file.workload;
    if uniform(rng) < workload.benchmark {
        return Ok(Source::Benchmark);
    }
    let (gpus, ranks) = (cluster.gpus_per_node, nodes * cluster.gpus_per_node);
    let mut refused = "no kind of parallelism fits its ranks".to_owned();
    for _ in 0..TRIES {
        let name = workload.models.draw(rng);
        let Some(model) = stage.models.iter().find(|model| model.name == *name) else { continue };
        let kind = *workload.parallelism.draw(rng);
        let layout = layout::draw(kind, model, ranks, gpus, rng);
        let Some(layout) = layout.filter(|layout| fits(cluster, layout)) else { continue };
        let recipe = recipe(stage, Recipe::new((**model).clone(), layout), rng);
        let pipeline_stage = rng.random_range(0..layout.pp) as u8;
        match iteration(&recipe, pipeline_stage, true, flops_per_us(cluster.gpu.sm)) {
            Ok(program) if program.calls.is_empty() => refused = format!("{layout} makes no call"),
            Ok(program) => {
                return Ok(Source::Training {
                    recipe: Box::new(recipe),
                    stage: pipeline_stage,
                    iterations: workload.iterations,
                    program: Arc::new(program),
                });
            }
            Err(error) => refused = error.to_string(),
        }
    }
    let why = format!("{nodes} nodes of {}: {refused}", cluster.name);
    Err(CurriculumError::NoJob { file: stage.name.clone(), why })
}

/// Whether every group of a layout can have a communicator on this cluster.
fn fits(cluster: &Cluster, layout: &Layout) -> bool {
    Group::ALL.into_iter().filter(|&group| layout.size(group) > 1).all(|group| {
        let place = layout.placement(group, cluster.gpus_per_node);
        cluster.hosts(place.nodes, place.ranks_per_node)
    })
}

fn recipe(stage: &Stage, mut recipe: Recipe, rng: &mut ChaCha8Rng) -> Recipe {
    let (workload, regime) = (&stage.file.workload, &stage.file.regime);
    recipe.micro_batches = *workload.micro_batches.draw(rng);
    recipe.bucket_bytes = u64::from(*workload.bucket_mib.draw(rng)) << 20;
    recipe.compression = *regime.compression.draw(rng);
    recipe.sync = *regime.sync.draw(rng);
    recipe.tau = if recipe.sync == SyncMode::Local { *regime.tau.draw(rng) } else { 1 };
    if recipe.layout.ep > 1 && uniform(rng) < 0.5 {
        recipe.imbalance = 1.0 + uniform(rng);
    }
    recipe
}

fn setting(regime: &Regime, cluster: &Cluster, nodes: u32, rng: &mut ChaCha8Rng) -> Setting {
    let mut overrides = Overrides::default();
    if uniform(rng) < regime.user_override {
        let (name, value) = USUAL_OVERRIDES[rng.random_range(0..USUAL_OVERRIDES.len())];
        overrides.set(name, value).expect("the usual overrides are spelled as NCCL reads them");
    }
    Setting {
        environment: *regime.environment.draw(rng),
        sharing: *regime.sharing.draw(rng),
        class: class(cluster, *regime.class.draw(rng)),
        library: *regime.library.draw(rng),
        fault_tolerance: *regime.fault_tolerance.draw(rng),
        in_network: Some(uniform(rng) < regime.in_network && nodes > 1),
        sharp: uniform(rng) < regime.sharp && nodes > 1,
        template: Some(uniform(rng) < regime.template),
        deterministic: uniform(rng) < regime.deterministic,
        overrides,
        version: *regime.nccl.draw(rng),
        runtime: Runtime::Stock,
    }
}

/// How the network is wired: as the cluster's file says, where it says anything else than the usual.
fn class(cluster: &Cluster, drawn: TopologyClass) -> TopologyClass {
    let stated = cluster.inter.as_ref().map(|inter| inter.class);
    stated.filter(|class| *class != TopologyClass::FatTree).unwrap_or(drawn)
}

fn shown(hidden: &Hidden, rng: &mut ChaCha8Rng) -> Shown {
    let nothing = uniform(rng) < hidden.context;
    let [topology, workload, scheduler, llm] = [(); 4].map(|()| uniform(rng) >= hidden.block);
    if nothing { Shown::NOTHING } else { Shown { topology, workload, scheduler, llm } }
}
