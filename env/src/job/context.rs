//! What a policy is told of a job: its communicator as a deployment file would describe it.

use dynamiccl_spec::{
    CclLibrary, GpuGeneration, JobContext, Llm, NetLink, NodeLink, Parallelism, Role, Scheduler, Topology,
    Workload,
};

use super::{Job, Setting, Source};
use crate::cluster::{Cluster, InterLink};
use crate::workload::{Group, Placement, usual_rate};

/// What of a job is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Where the communicator lies, beside ranks and nodes, which NCCL tells.
    pub topology: bool,
    /// How the job trains.
    pub workload: bool,
    /// What schedulers have decided.
    pub scheduler: bool,
    /// The model.
    pub llm: bool,
}

impl Shown {
    /// Everything.
    pub const ALL: Shown = Shown { topology: true, workload: true, scheduler: true, llm: true };
    /// Nothing but what NCCL itself tells.
    pub const NOTHING: Shown = Shown { topology: false, workload: false, scheduler: false, llm: false };
}

impl Job {
    /// What the policy is told about calls of a group that lies like this. Sync mode and tau are those of the
    /// moment.
    pub fn context(&self, place: &Placement, group: Option<Group>, workload: &Workload) -> JobContext {
        let whole = JobContext {
            topology: self.topology(place),
            workload: *workload,
            scheduler: self.scheduler(group),
            llm: self.llm(),
        };
        self.shown.of(&whole)
    }

    /// Where a communicator that lies like this really is.
    pub fn topology(&self, place: &Placement) -> Topology {
        let mix = self.cluster.tier_mix(place.nodes, place.ranks_per_node);
        Topology {
            ranks: place.nodes * place.ranks_per_node,
            nodes: place.nodes,
            gpu: GpuGeneration::of_sm(self.cluster.gpu.sm),
            intra: node_link(&self.cluster, place),
            intra_generation: self.cluster.intra.generation,
            inter: net_link(&self.cluster, place),
            class: self.setting.class,
            tier_max: Some(self.cluster.tier(place.nodes)),
            tier_mix: Some(mix.map(|share| share as f32)),
            in_network: self.setting.in_network.map(|active| active && place.nodes > 1),
            library: self.setting.library,
        }
    }

    fn scheduler(&self, group: Option<Group>) -> Scheduler {
        // Ranks of different stages must be told the same where they call together.
        let one_stage = group.is_some_and(|group| !group.spans_stages());
        let stage = match &self.source {
            Source::Training { stage, .. } => one_stage.then_some(*stage),
            Source::Benchmark | Source::Trace(_) | Source::Sweep(_) | Source::Live(_) => None,
        };
        let role = group.map_or(Role::Unknown, Group::role);
        let Setting { sharing, template, .. } = self.setting;
        Scheduler { stage, role, priority: None, sharing, template }
    }

    fn llm(&self) -> Llm {
        let fault_tolerance = self.setting.fault_tolerance;
        let Source::Training { recipe, .. } = &self.source else {
            return Llm { fault_tolerance, ..Llm::default() };
        };
        let layout = &recipe.layout;
        Llm {
            parallelism: layout.parallelism(),
            params: recipe.model.params() as f64,
            fault_tolerance,
            three_d: Some(layout.tp > 1 && layout.pp > 1 && layout.dp > 1),
        }
    }

    /// How the job trains when it begins.
    pub fn workload(&self) -> Workload {
        let environment = self.setting.environment;
        let Source::Training { recipe, .. } = &self.source else {
            return Workload { environment, ..Workload::default() };
        };
        let rate = match recipe.compression_rate {
            0.0 => usual_rate(recipe.compression, recipe.gradient_bytes),
            rate => rate,
        };
        Workload {
            environment,
            sync: recipe.sync,
            tau: recipe.tau,
            compression: recipe.compression,
            compression_rate: rate as f32,
        }
    }
}

impl Shown {
    fn of(&self, whole: &JobContext) -> JobContext {
        let Topology { ranks, nodes, .. } = whole.topology;
        let bare = Topology { ranks, nodes, library: CclLibrary::Unknown, ..Topology::default() };
        JobContext {
            topology: if self.topology { whole.topology } else { bare },
            workload: if self.workload { whole.workload } else { Workload::default() },
            scheduler: if self.scheduler { whole.scheduler } else { Scheduler::default() },
            llm: if self.llm {
                whole.llm
            } else {
                Llm { parallelism: Parallelism::Unknown, ..Llm::default() }
            },
        }
    }
}

fn node_link(cluster: &Cluster, place: &Placement) -> NodeLink {
    if place.ranks_per_node == 1 { NodeLink::None } else { cluster.intra.link.into() }
}

fn net_link(cluster: &Cluster, place: &Placement) -> NetLink {
    match cluster.inter.as_ref().filter(|_| place.nodes > 1).map(|inter| inter.link) {
        None => NetLink::inside(node_link(cluster, place), place.ranks_per_node),
        Some(InterLink::Infiniband) => NetLink::Infiniband,
        Some(InterLink::Roce) => NetLink::RoceV2,
        Some(InterLink::Efa | InterLink::Slingshot | InterLink::Tcpx) => NetLink::GpuDirectRdma,
        Some(InterLink::Tcp | InterLink::TcpLoopback | InterLink::TcpVeth) => NetLink::CommodityEthernet,
    }
}
