//! One stage: which jobs come, on which machines, in what weather, and what is worth how much.

use std::sync::Arc;

use dynamiccl_spec::{
    CclLibrary, Compression, Environment, FaultTolerance, GpuSharing, Parallelism, Runtime, SyncMode,
    TopologyClass,
};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::curriculum::Mix;
use crate::nccl::Version;
use crate::reward::Weights;
use crate::workload::ModelShape;

/// A stage as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageFile {
    /// Version of the schema.
    pub schema: u32,
    /// One line for people.
    pub description: String,
    /// Tiers of machines; node counts of other tiers are not drawn.
    pub tiers: Vec<u8>,
    /// Machines.
    pub clusters: Vec<Machines>,
    /// Jobs.
    pub workload: Workloads,
    /// What surrounds them.
    pub regime: Regime,
    /// What changes while they run.
    pub dynamics: Dynamics,
    /// What the policy is not told.
    pub hidden: Hidden,
    /// What is worth how much.
    pub reward: Weights,
    /// When the stage is learned.
    pub promotion: Promotion,
    /// What of earlier stages stays.
    #[serde(default)]
    pub replay: Replay,
}

/// Nodes of one cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    /// The cluster, by name or file.
    pub name: String,
    /// Node counts, each as likely as the next.
    pub nodes: Vec<u32>,
    /// The tier whose latency its nodes have between them; its own where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_tier: Option<u8>,
    /// How often it comes, relative to the others.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

/// What is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workloads {
    /// Calls of one episode.
    pub calls: u32,
    /// Iterations after which a job is done.
    pub iterations: u32,
    /// Models, by name.
    pub models: Mix<String>,
    /// How they are spread.
    pub parallelism: Mix<Parallelism>,
    /// Micro-batches of an iteration.
    pub micro_batches: Mix<u32>,
    /// MiB of a bucket of gradients; 0 sends every tensor by itself.
    pub bucket_mib: Mix<u32>,
    /// Share of jobs that measure instead of train: any tuned collective, any size from 1 KiB to 1 GiB,
    /// in runs of equal calls, so that no call stays unseen.
    pub benchmark: f64,
}

/// What surrounds a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    /// Where training happens.
    pub environment: Mix<Environment>,
    /// When workers wait for each other.
    pub sync: Mix<SyncMode>,
    /// Local steps between synchronisations, for local SGD.
    pub tau: Mix<u32>,
    /// Chance per iteration that sync mode or tau changes.
    pub sync_change: f64,
    /// How gradients are made smaller.
    pub compression: Mix<Compression>,
    /// Who else uses the GPU.
    pub sharing: Mix<GpuSharing>,
    /// How the network is wired.
    pub class: Mix<TopologyClass>,
    /// The library that carries collectives.
    pub library: Mix<CclLibrary>,
    /// What happens when a rank fails.
    pub fault_tolerance: Mix<FaultTolerance>,
    /// The release of NCCL.
    pub nccl: Mix<Version>,
    /// Share of jobs across nodes whose switches aggregate.
    pub in_network: f64,
    /// Share of jobs across nodes whose switches reduce for NCCL (SHARP, CollNet).
    pub sharp: f64,
    /// Share of jobs whose pipelines come from templates.
    pub template: f64,
    /// Share of jobs that must add in the same order at every call.
    pub deterministic: f64,
    /// Share of jobs in which the user has fixed something.
    pub user_override: f64,
    /// What runs schedules beside NCCL; stock NCCL alone where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Mix<Runtime>>,
}

/// What changes while a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dynamics {
    /// Factor on other people's traffic.
    pub load: f64,
    /// Factor on jitter.
    pub jitter: f64,
    /// Factor on drift.
    pub drift: f64,
    /// Stragglers that come in 1,000 calls.
    pub stragglers: f64,
    /// Link faults that come in 1,000 calls.
    pub faults: f64,
    /// Share of the network that own channels can clog.
    pub congestion: f64,
    /// How alike what a WAN leaves of its links is from one call to the next; none where its weather is as between
    /// any nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wan: Option<f64>,
}

impl Dynamics {
    /// Nothing changes.
    pub const STILL: Dynamics = Dynamics {
        load: 0.0,
        jitter: 0.0,
        drift: 0.0,
        stragglers: 0.0,
        faults: 0.0,
        congestion: 0.0,
        wan: None,
    };
}

/// What the policy is not told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hidden {
    /// Share of jobs that say nothing of themselves; NCCL's own numbers stay.
    pub context: f64,
    /// Share of the other jobs in which a block is left out, for each block.
    pub block: f64,
    /// Share of jobs without feedback.
    pub feedback: f64,
    /// Calls between two times that feedback arrives, from and to.
    pub staleness: [u32; 2],
}

/// When a stage is learned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// Regret on held-out worlds below which the next stage begins.
    pub regret: f64,
    /// Fewest steps before that.
    pub min_steps: u64,
    /// Most steps, after which training goes on with what was reached and says so.
    pub max_steps: u64,
}

impl Promotion {
    /// The same with so many times its steps.
    pub(super) fn times(self, factor: f64) -> Self {
        let of = |steps: u64| ((steps as f64 * factor) as u64).max(1);
        Promotion { min_steps: of(self.min_steps), max_steps: of(self.max_steps), ..self }
    }
}

/// What of earlier stages stays.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Share of episodes that come from them.
    pub share: f64,
    /// Their names.
    pub stages: Vec<String>,
}

/// A stage that can be drawn from: every name looked up.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The file's name.
    pub name: String,
    /// What the file states.
    pub file: StageFile,
    /// The clusters, in the file's order.
    pub clusters: Vec<Arc<Cluster>>,
    /// The models that the file names.
    pub models: Vec<Arc<ModelShape>>,
    /// Earlier stages that stay.
    pub replay: Vec<Arc<Stage>>,
}

impl Stage {
    /// The machines that jobs are drawn on: position of the cluster, and its node counts of the stage's tiers.
    pub fn machines(&self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        self.file.clusters.iter().enumerate().filter_map(|(at, machines)| {
            let of_tier = |nodes: &u32| self.file.tiers.contains(&self.clusters[at].tier(*nodes));
            let nodes: Vec<u32> = machines.nodes.iter().copied().filter(of_tier).collect();
            (!nodes.is_empty()).then_some((at, nodes))
        })
    }
}
