//! The words that every part of DynamICCL shares, and nothing else.
//!
//! Training, evaluation and the plugin inside somebody's job must mean the same thing by "ring",
//! by "64K" and by "this pair is unavailable", so these words live here once, below every other
//! crate. Nothing here knows a cluster, a time or a policy.
#![forbid(unsafe_code)]

pub mod action;
pub mod context;
pub mod driven;
pub mod features;
pub mod fnv;
pub mod gates;
pub mod ids;
pub mod knobs;
pub mod launchers;
pub mod loaded;
pub mod math;
pub mod overrides;
pub mod release;
pub mod table;
pub mod tiers;
pub mod tuner;
pub mod units;
pub mod variables;
pub mod words;

pub use action::{Choice, Head, Mask};
pub use context::{
    CclLibrary, Compression, Environment, FaultTolerance, GpuGeneration, GpuSharing, JobContext, Llm,
    NetLink, NodeLink, Parallelism, Role, Scheduler, SyncMode, Topology, TopologyClass, Workload,
};
pub use driven::Order;
pub use gates::{Gate, GateCounts, GateSet, Gated, Gates};
pub use ids::{Algorithm, Collective, Pair, Protocol};
pub use knobs::{ChannelChoice, ChunkChoice, Knobs, Path, Runtime, ThreadChoice};
pub use overrides::Overrides;
pub use table::{CostTable, PairMask};
pub use tuner::{Decision, Fallback, Measure, Measured, Query, Reason, Tuner};
pub use units::{Bytes, GBps, Micros};
