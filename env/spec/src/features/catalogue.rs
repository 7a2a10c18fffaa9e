//! Every feature: its name, what its numbers are, where they come from, and what they stand for.
//!
//! The table is data: the encoder's widths, the hash, the spaces of the environment and
//! `docs/state.md` all come from it.

use crate::action::Head;
use crate::context::{
    CclLibrary, Compression, Environment, FaultTolerance, GpuGeneration, GpuSharing, NetLink, NodeLink,
    Parallelism, Role, SyncMode, TIERS, TopologyClass,
};
use crate::ids::{Collective, PAIRS};

/// What a feature is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// Where the communicator lies.
    Topology,
    /// What schedulers have decided.
    Scheduler,
    /// The model being trained.
    Llm,
    /// How the job trains.
    Workload,
    /// The call itself, with NCCL's own cost table.
    Collective,
    /// The call before: its knobs, the rhythm of calls, and what was measured.
    Feedback,
}

impl Block {
    /// All of them, in the order of the vector.
    pub const ALL: [Block; 6] =
        [Block::Topology, Block::Scheduler, Block::Llm, Block::Workload, Block::Collective, Block::Feedback];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Block::Topology => "topology",
            Block::Scheduler => "scheduler",
            Block::Llm => "llm",
            Block::Workload => "workload",
            Block::Collective => "collective",
            Block::Feedback => "feedback",
        }
    }
}

/// Which part of a row a feature is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Context of the job.
    Job,
    /// Context of the call.
    Call,
    /// History.
    History,
}

/// Where a feature's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The same on every rank by construction.
    RankInvariant,
    /// Measured: may differ between ranks.
    Measured,
}

/// What the numbers of a feature are.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// One number within a range.
    Scalar {
        /// Smallest value.
        low: f32,
        /// Largest value.
        high: f32,
        /// What it is computed from.
        of: &'static str,
    },
    /// One number per word, 1 at the word that holds.
    Word(fn(usize) -> Option<String>, usize),
    /// Unknown, no, yes: 1 at the one that holds.
    Flag,
    /// Several numbers within a range.
    Vector {
        /// How many.
        len: usize,
        /// Smallest value.
        low: f32,
        /// Largest value.
        high: f32,
        /// What they are.
        of: &'static str,
    },
}

/// One feature.
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    /// Its name, unique.
    pub name: &'static str,
    /// What it is about.
    pub block: Block,
    /// Which part of a row it is in.
    pub part: Part,
    /// Where it comes from.
    pub origin: Origin,
    /// What its numbers are.
    pub kind: Kind,
    /// What it looks like when nobody knows it.
    pub unknown: &'static str,
    /// How what it stands for changes times in the simulator.
    pub mechanism: &'static str,
}

impl Feature {
    /// How many numbers it takes.
    pub const fn width(&self) -> usize {
        match self.kind {
            Kind::Scalar { .. } => 1,
            Kind::Word(_, len) | Kind::Vector { len, .. } => len,
            Kind::Flag => 3,
        }
    }

    /// Smallest and largest value of its numbers.
    pub const fn range(&self) -> [f32; 2] {
        match self.kind {
            Kind::Scalar { low, high, .. } | Kind::Vector { low, high, .. } => [low, high],
            Kind::Word(..) | Kind::Flag => [0.0, 1.0],
        }
    }
}

/// Numbers in a part.
pub const fn width(part: Part) -> usize {
    let (mut width, mut i) = (0, 0);
    while i < FEATURES.len() {
        if FEATURES[i].part as u8 == part as u8 {
            width += FEATURES[i].width();
        }
        i += 1;
    }
    width
}

/// Where a feature's numbers start within its part, and how many there are.
pub fn slot(name: &str) -> Option<std::ops::Range<usize>> {
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    let before = FEATURES.iter().take_while(|other| other.name != name);
    let start = before.filter(|other| other.part == feature.part).map(Feature::width).sum();
    Some(start..start + feature.width())
}

macro_rules! words {
    ($of:ident) => {
        Kind::Word(|id| $of::from_id(id).map(|word| word.name().to_owned()), $of::ALL.len())
    };
}

macro_rules! head {
    ($head:ident) => {
        Kind::Word(|index| Head::$head.label(index), Head::$head.size())
    };
}

const fn unit(of: &'static str) -> Kind {
    Kind::Scalar { low: 0.0, high: 1.0, of }
}

const fn signed(of: &'static str) -> Kind {
    Kind::Scalar { low: -1.0, high: 1.0, of }
}

const fn job(
    block: Block,
    name: &'static str,
    kind: Kind,
    unknown: &'static str,
    mechanism: &'static str,
) -> Feature {
    Feature { name, block, part: Part::Job, origin: Origin::RankInvariant, kind, unknown, mechanism }
}

const fn call(block: Block, name: &'static str, kind: Kind, mechanism: &'static str) -> Feature {
    let unknown = NEVER;
    Feature { name, block, part: Part::Call, origin: Origin::RankInvariant, kind, unknown, mechanism }
}

const fn past(
    name: &'static str,
    origin: Origin,
    kind: Kind,
    unknown: &'static str,
    mechanism: &'static str,
) -> Feature {
    Feature { name, block: Block::Feedback, part: Part::History, origin, kind, unknown, mechanism }
}

/// What stands where a feature is never unknown.
pub const NEVER: &str = "never: NCCL tells it";
const WORD: &str = "1 at \"unknown\"";
const FLAG: &str = "1 at \"unknown\"";
const NO_CALL: &str = "all 0 before the first call";
const NO_FEEDBACK: &str = "0 while no feedback has arrived";

/// Every feature, in the order of the vector.
pub const FEATURES: &[Feature] = &[
    job(
        Block::Topology,
        "log2_ranks",
        unit("log2(ranks) / 20"),
        NEVER,
        "steps of a ring, depth of a tree, parts of a shard",
    ),
    job(Block::Topology, "log2_nodes", unit("log2(nodes) / 20"), NEVER, "hops that cross the network"),
    job(
        Block::Topology,
        "log2_ranks_per_node",
        unit("log2(ranks / nodes) / 20"),
        NEVER,
        "hops inside a node, ranks that share its NICs",
    ),
    job(
        Block::Topology,
        "gpu",
        words!(GpuGeneration),
        WORD,
        "what one channel moves, launch times, NVLS rate",
    ),
    job(Block::Topology, "intra_link", words!(NodeLink), WORD, "latency and bandwidth of hops inside a node"),
    job(
        Block::Topology,
        "intra_generation",
        unit("generation of NVLink or PCIe / 8"),
        "0",
        "bandwidth of links inside a node",
    ),
    job(
        Block::Topology,
        "inter_link",
        words!(NetLink),
        WORD,
        "latency, bandwidth and host cost of hops between nodes",
    ),
    job(
        Block::Topology,
        "topology_class",
        words!(TopologyClass),
        WORD,
        "what ring neighbours, tree edges and all-to-all traffic find between nodes; NCCL is blind to it",
    ),
    job(
        Block::Topology,
        "communicator_tier_max",
        Kind::Word(|i| Some(if i == 0 { "unknown".to_owned() } else { (i - 1).to_string() }), TIERS + 1),
        WORD,
        "latency and bandwidth of the most distant hop",
    ),
    job(
        Block::Topology,
        "communicator_tier_mix",
        Kind::Vector { len: TIERS, low: 0.0, high: 1.0, of: "share of rank pairs at tiers 0 to 4" },
        "all 0",
        "how many hops pay the distant tier's latency",
    ),
    job(
        Block::Topology,
        "in_network_aggregation",
        Kind::Flag,
        FLAG,
        "reductions go through the switches' aggregation, which has its own time",
    ),
    job(
        Block::Topology,
        "ccl_library",
        words!(CclLibrary),
        WORD,
        "another library runs its own default, slower or faster than NCCL's",
    ),
    job(
        Block::Scheduler,
        "pipeline_stage",
        unit("(1 + stage) / 65"),
        "0",
        "first and last stages hold embeddings: their gradient calls are larger",
    ),
    job(
        Block::Scheduler,
        "pipeline_role",
        words!(Role),
        WORD,
        "calls between replicas run beside compute, which takes memory bandwidth from channels",
    ),
    job(
        Block::Scheduler,
        "coflow_priority",
        unit("(1 + class) / 8"),
        "0",
        "how much of other people's traffic a call waits for",
    ),
    job(
        Block::Scheduler,
        "gpu_sharing",
        words!(GpuSharing),
        WORD,
        "channels get less of the GPU, or launches wait for a time slice",
    ),
    job(
        Block::Scheduler,
        "pipeline_template",
        Kind::Flag,
        FLAG,
        "a fault stalls calls for less time where a template takes over",
    ),
    job(
        Block::Llm,
        "parallelism",
        words!(Parallelism),
        WORD,
        "which calls are made, how large they are and which ranks they join",
    ),
    job(
        Block::Llm,
        "log10_params",
        unit("log10(parameters) / 13"),
        "0",
        "sizes of gradient and parameter calls",
    ),
    job(
        Block::Llm,
        "fault_tolerance",
        words!(FaultTolerance),
        WORD,
        "how long a fault stalls the calls around it",
    ),
    job(
        Block::Llm,
        "is_3d",
        Kind::Flag,
        FLAG,
        "data-parallel groups share a node's NICs with their siblings, and sizes have two modes",
    ),
    job(
        Block::Workload,
        "environment",
        words!(Environment),
        WORD,
        "how often ranks straggle and links jitter",
    ),
    job(
        Block::Workload,
        "sync_mode",
        words!(SyncMode),
        WORD,
        "whether a call waits for the slowest rank, and what is synchronised",
    ),
    job(
        Block::Workload,
        "local_tau",
        unit("(1 + log2(tau)) / 11"),
        "0",
        "how often gradients or parameters are synchronised, and how large they are then",
    ),
    job(
        Block::Workload,
        "compression",
        words!(Compression),
        WORD,
        "bytes that are sent, and as which collective",
    ),
    job(Block::Workload, "compression_rate", unit("(1 + log2(rate)) / 12"), "0", "bytes that are sent"),
    call(
        Block::Workload,
        "effective_bytes",
        unit("log2(bytes that one rank contributes after compression) / 40"),
        "bytes that one rank contributes: of sharded collectives its own part",
    ),
    call(Block::Collective, "collective", words!(Collective), "which formula holds"),
    call(Block::Collective, "log2_bytes", unit("log2(nBytes) / 40"), "bytes moved"),
    call(
        Block::Collective,
        "pipelined_ops",
        unit("log2(operations in the launch) / 10"),
        "operations of one launch share its cost",
    ),
    call(
        Block::Collective,
        "nccl_best",
        unit("log2(smallest predicted µs) / 32"),
        "NCCL's prediction follows the real links where NCCL knows them",
    ),
    call(
        Block::Collective,
        "nccl_cost",
        Kind::Vector {
            len: PAIRS,
            low: 0.0,
            high: 1.0,
            of: "ln(predicted µs / smallest predicted µs) / 8 by algorithm × protocol, 1 where unavailable",
        },
        "NCCL's prediction for each pair follows the graphs that its search found",
    ),
    call(
        Block::Collective,
        "nccl_available",
        Kind::Vector { len: PAIRS, low: 0.0, high: 1.0, of: "1 where the pair may be chosen" },
        "links, GPUs and the user decide what can run",
    ),
    Feature {
        unknown: "0: no runtime",
        ..call(
            Block::Collective,
            "synthesised_available",
            unit("1 where a runtime can run a synthesised schedule for the call"),
            "a schedule runs where there is a runtime for it",
        )
    },
    Feature {
        unknown: "0: no runtime",
        ..call(
            Block::Collective,
            "synthesised_cost",
            signed("ln(predicted µs of the schedule / smallest predicted µs) / 2"),
            "the executor's time follows the links that the schedule was made for",
        )
    },
    call(
        Block::Topology,
        "unfilled_level",
        unit("ceil(log2(nodes)) - log2(nodes)"),
        "rounds of PAT and levels of a tree come whole: five nodes take as many as eight",
    ),
    past("last_path", Origin::RankInvariant, head!(Path), NO_CALL, "what carried the call before"),
    past("last_pair", Origin::RankInvariant, head!(Pair), NO_CALL, "what ran in the call before"),
    past(
        "last_channels",
        Origin::RankInvariant,
        head!(Channels),
        NO_CALL,
        "channels leave congestion behind",
    ),
    past("last_chunk", Origin::RankInvariant, head!(Chunk), NO_CALL, "what ran in the call before"),
    past(
        "last_threads",
        Origin::RankInvariant,
        head!(Threads),
        NO_CALL,
        "threads hold for the whole process",
    ),
    past(
        "last_launched",
        Origin::RankInvariant,
        unit("log2(channels that ran) / 6"),
        NO_CALL,
        "channels leave congestion behind",
    ),
    past(
        "rhythm",
        Origin::RankInvariant,
        unit("log2(1 + calls since the last one of this kind) / 12"),
        "1 for a kind's first call",
        "sync mode and tau change how often a kind of call comes",
    ),
    past(
        "has_feedback",
        Origin::Measured,
        unit("1 where the call before was measured"),
        "0",
        "none: it says whether the others mean anything",
    ),
    past(
        "last_time",
        Origin::Measured,
        signed("ln(measured µs / predicted µs) / 8"),
        NO_FEEDBACK,
        "the hidden world, load, faults and drift, in one number",
    ),
    past(
        "expected_time",
        Origin::Measured,
        signed("running mean of last_time for this kind of call"),
        NO_FEEDBACK,
        "the same, over many calls",
    ),
    past(
        "cusum",
        Origin::Measured,
        signed("CUSUM of the normalised time / its threshold"),
        NO_FEEDBACK,
        "grows when times leave their level for good",
    ),
    past(
        "reconstruction_error",
        Origin::Measured,
        unit("|measured - expected| in spreads / 8"),
        NO_FEEDBACK,
        "grows when a call is unlike its kind",
    ),
    past(
        "congestion",
        Origin::Measured,
        unit("how far recent calls are above the best of their kind"),
        NO_FEEDBACK,
        "other people's traffic and our own channels fill queues",
    ),
    past(
        "staleness",
        Origin::RankInvariant,
        unit("log2(1 + calls since feedback) / 12"),
        "1 before any",
        "the machine moves on while nobody measures",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_slots_tile_each_part() {
        for part in [Part::Job, Part::Call, Part::History] {
            let mut next = 0;
            for feature in FEATURES.iter().filter(|feature| feature.part == part) {
                let slot = slot(feature.name).unwrap();
                assert_eq!(slot.start, next, "{}", feature.name);
                next = slot.end;
            }
            assert_eq!(next, width(part));
        }
        let mut names: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FEATURES.len());
    }

    #[test]
    fn a_decisions_context_is_rank_invariant() {
        for feature in FEATURES.iter().filter(|feature| feature.part != Part::History) {
            assert_eq!(feature.origin, Origin::RankInvariant, "{}", feature.name);
        }
    }

    #[test]
    fn every_word_has_a_label() {
        for feature in FEATURES {
            if let Kind::Word(label, len) = feature.kind {
                assert!((0..len).all(|index| label(index).is_some()), "{}", feature.name);
            }
        }
    }
}
