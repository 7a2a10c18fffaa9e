//! A job: what runs on which machine under which regime, before any call has a time.
//!
//! One episode is one job. Here it is drawn from a stage or read from a trace; the environment puts
//! times to its calls. A job knows no world: the same job can meet any weather.

mod compute;
mod context;
mod draw;
mod layout;
mod replay;
mod source;

use std::sync::Arc;

use dynamiccl_spec::{
    CclLibrary, Environment, FaultTolerance, GpuSharing, Overrides, Runtime, TopologyClass,
};

use crate::cluster::Cluster;
use crate::nccl::Version;
pub use compute::flops_per_us;
pub use context::Shown;
pub use replay::ReplayError;
pub use source::{Source, Traced};
pub(crate) use source::{benchmark_loop, benchmark_run};

/// One job on one machine.
#[derive(Debug, Clone)]
pub struct Job {
    /// The machine.
    pub cluster: Arc<Cluster>,
    /// Its nodes.
    pub nodes: u32,
    /// Where its calls come from.
    pub source: Source,
    /// What surrounds it.
    pub setting: Setting,
    /// What the policy is told of it.
    pub shown: Shown,
    /// Calls between two times that feedback arrives; none where it never does.
    pub feedback_every: Option<u32>,
    /// The seed of its world.
    pub world: u64,
}

/// What surrounds a job and does not change while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Where training happens.
    pub environment: Environment,
    /// Who else uses the GPU.
    pub sharing: GpuSharing,
    /// How the network is wired.
    pub class: TopologyClass,
    /// The library that carries collectives.
    pub library: CclLibrary,
    /// What happens when a rank fails.
    pub fault_tolerance: FaultTolerance,
    /// Whether switches aggregate reductions across nodes; none where nobody knows.
    pub in_network: Option<bool>,
    /// Whether switches reduce for NCCL (SHARP).
    pub sharp: bool,
    /// Whether pipelines come from templates; none where nobody knows.
    pub template: Option<bool>,
    /// Whether additions must keep their order.
    pub deterministic: bool,
    /// What the user has fixed.
    pub overrides: Overrides,
    /// The release of NCCL.
    pub version: Version,
    /// What runs schedules beside NCCL.
    pub runtime: Runtime,
}

impl Default for Setting {
    /// NCCL on machines of one's own in a datacentre.
    fn default() -> Self {
        Setting {
            environment: Environment::Datacentre,
            sharing: GpuSharing::Dedicated,
            class: TopologyClass::FatTree,
            library: CclLibrary::Nccl,
            fault_tolerance: FaultTolerance::None,
            in_network: Some(false),
            sharp: false,
            template: Some(false),
            deterministic: false,
            overrides: Overrides::default(),
            version: Version::default(),
            runtime: Runtime::Stock,
        }
    }
}
