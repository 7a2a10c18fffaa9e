//! What a deployment file may say, and what is checked of it.

use dynamiccl_spec::context::{PRIORITY_MAX, TIERS};
use dynamiccl_spec::{
    CclLibrary, Compression, Environment, FaultTolerance, GpuGeneration, GpuSharing, Llm, NetLink, NodeLink,
    Parallelism, Scheduler, SyncMode, TopologyClass, Workload,
};
use serde::Deserialize;

use super::launch::Launch;
use super::rule::Rule;
use super::schedule::Schedule;

/// The newest generation of NVLink or PCIe that the state has room for (docs/state.md).
const GENERATIONS: u8 = 8;

/// A deployment file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub cluster: ClusterWords,
    pub workload: Workload,
    pub scheduler: Scheduler,
    pub llm: Llm,
    pub launch: Launch,
    pub communicator: Vec<Rule>,
    pub schedule: Vec<Schedule>,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClusterWords {
    pub gpu: GpuGeneration,
    pub intra: NodeLink,
    pub intra_generation: u8,
    pub inter: NetLink,
    pub class: TopologyClass,
    pub tiers: Vec<TierFrom>,
    pub in_network: Option<bool>,
    pub library: CclLibrary,
}

/// From so many nodes on, a communicator is of this tier.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TierFrom {
    pub nodes: u32,
    pub tier: u8,
}

impl ClusterWords {
    /// Whether anything is said of it.
    pub fn is_described(&self) -> bool {
        *self != ClusterWords::default()
    }

    fn unsaid(&self) -> [(&'static str, bool); 7] {
        let numbered = matches!(self.intra, NodeLink::Nvlink | NodeLink::Pcie | NodeLink::Shm);
        let described = self.is_described();
        [
            ("cluster.gpu", self.gpu == GpuGeneration::Unknown),
            ("cluster.intra", self.intra == NodeLink::Unknown),
            ("cluster.intra_generation", numbered && self.intra_generation == 0),
            ("cluster.inter", self.inter == NetLink::Unknown),
            ("cluster.class", self.class == TopologyClass::Unknown),
            ("cluster.tiers", self.tiers.is_empty()),
            ("cluster.in_network", self.in_network.is_none()),
        ]
        .map(|(word, unsaid)| (word, described && unsaid))
    }
}

/// Of a benchmark training says the environment, of a job all.
fn unsaid_of_workload(said: &Workload) -> [(&'static str, bool); 5] {
    let Workload { environment, sync, tau, compression, compression_rate } = *said;
    let trains = *said != Workload { environment, ..Workload::default() };
    [
        ("workload.environment", environment == Environment::Unknown),
        ("workload.sync", sync == SyncMode::Unknown),
        ("workload.tau", tau == 0),
        ("workload.compression", compression == Compression::Unknown),
        ("workload.compression_rate", compression_rate == 0.0),
    ]
    .map(|(word, unsaid)| (word, trains && unsaid))
}

/// The rest of it differs from one communicator to the next.
fn unsaid_of_scheduler(said: &Scheduler) -> [(&'static str, bool); 2] {
    let (shared, template) = (said.sharing != GpuSharing::Unknown, said.template.is_some());
    [("scheduler.sharing", template && !shared), ("scheduler.template", shared && !template)]
}

/// Of a benchmark training says what happens when a rank fails, of a job all.
fn unsaid_of_llm(said: &Llm) -> [(&'static str, bool); 4] {
    let Llm { parallelism, params, fault_tolerance, three_d } = *said;
    let trains = *said != Llm { fault_tolerance, ..Llm::default() };
    [
        ("llm.parallelism", parallelism == Parallelism::Unknown),
        ("llm.params", params == 0.0),
        ("llm.fault_tolerance", fault_tolerance == FaultTolerance::Unknown),
        ("llm.three_d", three_d.is_none()),
    ]
    .map(|(word, unsaid)| (word, trains && unsaid))
}

impl ClusterWords {
    fn check(&self) -> Result<(), String> {
        if self.intra_generation > GENERATIONS {
            let known = format!("must be 1 to {GENERATIONS}, or 0 for unknown");
            return Err(format!("intra_generation = {}: {known}", self.intra_generation));
        }
        if let Some(from) = self.tiers.iter().find(|from| usize::from(from.tier) >= TIERS) {
            return Err(format!("tiers: tier {}: must be 0 to {}", from.tier, TIERS - 1));
        }
        if self.tiers.iter().any(|from| from.nodes == 0) {
            return Err("tiers: nodes = 0: must be at least 1".to_owned());
        }
        if !self.tiers.is_sorted_by(|a, b| a.nodes < b.nodes) {
            return Err("tiers: node counts must ascend".to_owned());
        }
        let falls = self.tiers.windows(2).find(|steps| steps[1].tier < steps[0].tier);
        falls.map_or(Ok(()), |steps| {
            let TierFrom { nodes, tier } = steps[1];
            Err(format!(
                "tiers: tier {tier} from {nodes} nodes on: must not be below the {} before",
                steps[0].tier
            ))
        })
    }
}

impl Document {
    /// Reads and checks a file.
    pub fn read(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}{}", error.message())
        })?;
        document.check()?;
        Ok(document)
    }

    /// What sections leave out of which anything is said.
    pub fn left_out(&self) -> impl Iterator<Item = &'static str> {
        let cluster = self.cluster.unsaid().into_iter();
        let job = unsaid_of_workload(&self.workload).into_iter().chain(unsaid_of_scheduler(&self.scheduler));
        let unsaid = cluster.chain(job).chain(unsaid_of_llm(&self.llm));
        unsaid.filter(|(_, unsaid)| *unsaid).map(|(word, _)| word)
    }

    fn check(&self) -> Result<(), String> {
        self.cluster.check().map_err(|why| format!("cluster.{why}"))?;
        if self.scheduler.priority.is_some_and(|class| class > PRIORITY_MAX) {
            return Err(format!("scheduler.priority: must be 0 to {PRIORITY_MAX}"));
        }
        let rate = self.workload.compression_rate;
        if !(rate == 0.0 || (1.0..f32::INFINITY).contains(&rate)) {
            return Err(format!("workload.compression_rate = {rate}: must be at least 1, or 0 for unknown"));
        }
        if !(0.0..f64::INFINITY).contains(&self.llm.params) {
            return Err(format!("llm.params = {}: must be a number of parameters", self.llm.params));
        }
        self.launch.check().map_err(|why| format!("launch.{why}"))?;
        self.schedule.iter().enumerate().try_for_each(|(at, schedule)| {
            schedule.check().map_err(|why| format!("schedule {}: {why}", at + 1))
        })?;
        self.communicator.iter().enumerate().try_for_each(|(at, rule)| {
            rule.check().map_err(|why| format!("communicator rule {}: {why}", at + 1))
        })
    }
}
