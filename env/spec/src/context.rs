//! What is known about the job around a call: where it runs, how it trains, who schedules it.
//!
//! All of it is the same on every rank by construction, because every rank reads the same deployment
//! file. What a deployment does not say is unknown, which is a value of its own and never a guess: a
//! policy is trained with it. Every default here is "unknown".

use serde::{Deserialize, Serialize};

use crate::words::word_enum;

word_enum! {
    /// Generation of the GPU.
    #[derive(Default)]
    GpuGeneration, "GPU generation", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// sm_70.
        Volta = 1 => "volta",
        /// sm_75.
        Turing = 2 => "turing",
        /// sm_80 to sm_87.
        Ampere = 3 => "ampere",
        /// sm_89.
        Ada = 4 => "ada",
        /// sm_90.
        Hopper = 5 => "hopper",
        /// sm_100 and later.
        Blackwell = 6 => "blackwell",
    }
}

word_enum! {
    /// How the GPUs of one node reach each other.
    #[derive(Default)]
    NodeLink, "link inside a node", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// One rank per node: nobody to reach.
        None = 1 => "none",
        /// NVLink.
        Nvlink = 2 => "nvlink",
        /// PCIe peer to peer.
        Pcie = 3 => "pcie",
        /// Through host memory.
        Shm = 4 => "shm",
    }
}

word_enum! {
    /// How nodes reach each other.
    #[derive(Default)]
    NetLink, "link between nodes", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// One node: nobody to reach.
        None = 1 => "none",
        /// One NVLink domain over several trays, up to 256 GPUs.
        NvSwitch256 = 2 => "nvswitch_256",
        /// GPUDirect RDMA over a vendor's network (EFA, Slingshot, TCPX).
        GpuDirectRdma = 3 => "gpudirect_rdma",
        /// RDMA over Ethernet.
        RoceV2 = 4 => "rocev2",
        /// InfiniBand.
        Infiniband = 5 => "infiniband",
        /// Kernel TCP over Ethernet.
        CommodityEthernet = 6 => "commodity_ethernet",
    }
}

/// GPUs beyond which one NVLink domain spans several trays.
const TRAY: u32 = 16;

impl NetLink {
    /// What joins the ranks of one node, as training and the plugin tell it: only a domain of several trays has
    /// a network of its own.
    pub fn inside(intra: NodeLink, ranks: u32) -> NetLink {
        if intra == NodeLink::Nvlink && ranks > TRAY { NetLink::NvSwitch256 } else { NetLink::None }
    }
}

word_enum! {
    /// How the network between nodes is wired.
    #[derive(Default)]
    TopologyClass, "topology class", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// Switch levels with equal capacity everywhere.
        FatTree = 1 => "fat_tree",
        /// Servers with several ports forward for each other.
        BCube = 2 => "bcube",
        /// A random graph of switches.
        Jellyfish = 3 => "jellyfish",
        /// Neighbours on a grid that wraps around.
        Torus = 4 => "torus",
        /// Meshes of boards joined by row and column switches.
        HammingMesh = 5 => "hammingmesh",
        /// Optical circuits, set per job.
        SipOcs = 6 => "sip_ocs",
        /// Direct links computed for one job.
        TopoOpt = 7 => "topoopt",
        /// Several of these in one communicator.
        Mixed = 8 => "mixed",
    }
}

word_enum! {
    /// The library that carries collectives.
    #[derive(Default)]
    CclLibrary, "collective library", {
        /// Not said. Only NCCL asks a tuner, so inside a plugin this is NCCL.
        #[default]
        Unknown = 0 => "unknown",
        /// NCCL.
        Nccl = 1 => "nccl",
        /// MPI.
        Mpi = 2 => "mpi",
        /// Gloo.
        Gloo = 3 => "gloo",
        /// MSCCL and its language.
        Msccl = 4 => "msccl",
        /// SCCL's synthesised schedules.
        Sccl = 5 => "sccl",
        /// TACCL's synthesised schedules.
        Taccl = 6 => "taccl",
        /// Any other.
        Other = 7 => "other",
    }
}

word_enum! {
    /// Where training happens.
    #[derive(Default)]
    Environment, "environment", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// Machines of one owner under one roof.
        Datacentre = 1 => "datacentre",
        /// Small machines close to the data.
        Edge = 2 => "edge",
        /// Machines of many owners.
        Federated = 3 => "federated",
    }
}

word_enum! {
    /// When workers wait for each other.
    #[derive(Default)]
    SyncMode, "sync mode", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// After every step (bulk-synchronous).
        Bsp = 1 => "bsp",
        /// Never.
        Async = 2 => "async",
        /// When one is too far behind (stale-synchronous).
        Stale = 3 => "stale",
        /// After tau local steps (local SGD).
        Local = 4 => "local",
        /// With neighbours only (gossip).
        Decentralised = 5 => "decentralised",
        /// Switches between the others while it runs.
        Hybrid = 6 => "hybrid",
    }
}

word_enum! {
    /// How gradients are made smaller before they are sent.
    #[derive(Default)]
    Compression, "compression", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// As they are.
        None = 1 => "none",
        /// 16 bits each.
        Fp16 = 2 => "fp16",
        /// 8 bits each.
        Int8 = 3 => "int8",
        /// The largest ones, with their positions.
        TopK = 4 => "top_k",
        /// Some at random, with their positions.
        RandomK = 5 => "random_k",
        /// Signs with error feedback.
        Sign = 6 => "sign",
        /// Low-rank factors (ATOMO, PowerSGD).
        LowRank = 7 => "low_rank",
        /// Sparse and quantised together (CocktailSGD).
        Combined = 8 => "combined",
    }
}

word_enum! {
    /// What a call is for in a pipeline; the network's experts are keyed on it.
    #[derive(Default)]
    Role, "role", {
        /// Not said; an expert of its own.
        #[default]
        Unknown = 0 => "unknown",
        /// Within a stage: tensor, sequence, context and expert parallelism.
        IntraStage = 1 => "intra_stage",
        /// Between replicas of a stage: data parallelism and FSDP.
        InterStage = 2 => "inter_stage",
        /// Activations or their gradients to the next stage.
        ActivationSend = 3 => "activation_send",
        /// The same, received.
        ActivationRecv = 4 => "activation_recv",
    }
}

word_enum! {
    /// Who else uses the GPU.
    #[derive(Default)]
    GpuSharing, "GPU sharing", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// Nobody.
        Dedicated = 1 => "dedicated",
        /// Others at the same time (MPS).
        Mps = 2 => "mps",
        /// Others on other slices (MIG).
        Mig = 3 => "mig",
        /// Others in turn.
        TimeSlice = 4 => "time_slice",
    }
}

word_enum! {
    /// How a model is spread over GPUs.
    #[derive(Default)]
    Parallelism, "parallelism", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// Data parallel.
        Dp = 1 => "dp",
        /// Pipeline parallel.
        Pp = 2 => "pp",
        /// Tensor parallel.
        Tp = 3 => "tp",
        /// Fully sharded data parallel.
        Fsdp = 4 => "fsdp",
        /// Tensor, pipeline and data parallel together.
        ThreeD = 5 => "3d",
        /// Experts on different GPUs.
        Moe = 6 => "moe",
    }
}

word_enum! {
    /// What happens when a rank fails.
    #[derive(Default)]
    FaultTolerance, "fault tolerance", {
        /// Not said.
        #[default]
        Unknown = 0 => "unknown",
        /// The job restarts.
        None = 1 => "none",
        /// Collectives go on without it (fault-tolerant allreduce).
        Ftar = 2 => "ftar",
        /// Others take its place in the pipeline (SWARM).
        Swarm = 3 => "swarm",
        /// A prepared pipeline template takes over (Oobleck).
        Oobleck = 4 => "oobleck",
    }
}

impl GpuGeneration {
    /// The generation of a compute capability × 10.
    pub const fn of_sm(sm: u32) -> Self {
        match sm {
            70..75 => GpuGeneration::Volta,
            75..80 => GpuGeneration::Turing,
            80..89 => GpuGeneration::Ampere,
            89 => GpuGeneration::Ada,
            90..100 => GpuGeneration::Hopper,
            100.. => GpuGeneration::Blackwell,
            _ => GpuGeneration::Unknown,
        }
    }
}

/// Number of tiers, 0 to 4.
pub const TIERS: usize = 5;

/// Where a communicator lies. NCCL itself tells ranks and nodes; the rest is the deployment's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topology {
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Nodes that it spans.
    pub nodes: u32,
    /// Generation of the GPUs.
    pub gpu: GpuGeneration,
    /// Links inside a node.
    pub intra: NodeLink,
    /// Generation of those links; 0 where unknown.
    pub intra_generation: u8,
    /// Links between nodes.
    pub inter: NetLink,
    /// How the network is wired.
    pub class: TopologyClass,
    /// The tier of its most distant ranks, 0 to 4.
    pub tier_max: Option<u8>,
    /// Share of rank pairs at each tier.
    pub tier_mix: Option<[f32; TIERS]>,
    /// Whether switches aggregate this communicator's reductions.
    pub in_network: Option<bool>,
    /// The library that carries it.
    pub library: CclLibrary,
}

/// How the job trains.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Where.
    pub environment: Environment,
    /// When workers wait for each other.
    pub sync: SyncMode,
    /// Local steps between two synchronisations; 0 where unknown.
    pub tau: u32,
    /// How gradients are made smaller.
    pub compression: Compression,
    /// Original bytes per byte sent; 0 where unknown.
    pub compression_rate: f32,
}

/// What schedulers above NCCL have decided.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// The pipeline stage that calls, from 0.
    pub stage: Option<u8>,
    /// What the call is for.
    pub role: Role,
    /// Class of its coflow, 0 (goes last) to 7 (goes first).
    pub priority: Option<u8>,
    /// Who else uses the GPU.
    pub sharing: GpuSharing,
    /// Whether pipelines are laid out from prepared templates.
    pub template: Option<bool>,
}

/// The model being trained.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Llm {
    /// How it is spread over GPUs.
    pub parallelism: Parallelism,
    /// Number of parameters; 0 where unknown.
    pub params: f64,
    /// What happens when a rank fails.
    pub fault_tolerance: FaultTolerance,
    /// Whether tensor, pipeline and data parallelism are all in use.
    pub three_d: Option<bool>,
}

/// Highest class of a coflow.
pub const PRIORITY_MAX: u8 = 7;

/// Everything that is known about the job around a call.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobContext {
    /// Where the communicator lies.
    pub topology: Topology,
    /// How the job trains.
    pub workload: Workload,
    /// What schedulers have decided.
    pub scheduler: Scheduler,
    /// The model.
    pub llm: Llm,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_unknown() {
        let context = JobContext::default();
        assert_eq!(context.topology.class, TopologyClass::Unknown);
        assert_eq!(context.scheduler.role, Role::Unknown);
        assert_eq!(context.topology.tier_max, None);
    }

    #[test]
    fn generations_follow_compute_capabilities() {
        use GpuGeneration::*;
        let known = [(70, Volta), (75, Turing), (80, Ampere), (86, Ampere), (89, Ada), (90, Hopper)];
        for (sm, generation) in known.into_iter().chain([(100, Blackwell), (120, Blackwell), (35, Unknown)]) {
            assert_eq!(GpuGeneration::of_sm(sm), generation, "sm_{sm}");
        }
    }
}
