//! What a step of the simulator tells beside its reward.

use dynamiccl_spec::{Collective, GateCounts, GateSet, Role};

use crate::model::Conditions;
use crate::reward::Terms;
use crate::sim::Setting;

/// What happened so far, and what the last call came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimInfo {
    /// Calls of this episode that have run.
    pub calls: u32,
    /// Iterations of the job that are done.
    pub iteration: u32,
    /// The call that has just run; none after a reset.
    pub last: Option<CallReport>,
    /// How often each gate fired in this episode.
    pub gates: GateCounts,
    /// What was noticed and cannot be done through NCCL.
    pub advice: Advice,
}

/// Advice for people, by how many calls it would have been good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    /// Sparse gradients went through NCCL, which sends them dense: a sparse-aware library fits better.
    pub sparse_library: u32,
}

/// One call that has run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallReport {
    /// Position of its communicator in the job.
    pub communicator: u16,
    /// The tier of that communicator.
    pub tier: u8,
    /// What was called.
    pub collective: Collective,
    /// Its size as NCCL counts it.
    pub bytes: u64,
    /// What it was for.
    pub role: Role,
    /// NCCL's own choice and its true time in the same conditions; none where NCCL tunes nothing.
    pub own: Option<Setting>,
    /// What ran, and its true time with the congestion that own channels have caused.
    pub ran: Option<Setting>,
    /// µs that NCCL predicts for the pair that ran; none where NCCL tunes nothing or did not carry it.
    pub predicted: Option<f32>,
    /// µs that it took this time, with its luck.
    pub measured: f64,
    /// µs that compute beside it lost to its channels.
    pub compute_lost: f64,
    /// The terms of its reward.
    pub terms: Terms,
    /// The gates that took a choice away.
    pub gates: GateSet,
    /// The state of the machine around it.
    pub conditions: Conditions,
    /// Congestion that own channels had caused before it, 0 to 1.
    pub congestion: f64,
    /// Whether a fault struck during it.
    pub fault: bool,
    /// Whether the trigger says that deciding anew is worth it.
    pub triggered: bool,
}
