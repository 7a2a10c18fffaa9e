//! Everything that answers "which knobs for this call": the frozen format, inference, the guard and
//! every baseline tuner. It may not know how a time comes about (that is the environment's) nor how
//! a policy is trained (the agent's), so that the plugin can carry it into a job.
#![forbid(unsafe_code)]

pub mod baselines;
pub mod frozen;
pub mod guard;
mod kinds;
pub mod memo;
pub mod nccl_csv;
pub mod network;
pub mod online;
pub mod policy;
pub mod probe;
pub mod random;
pub mod roster;
pub mod search;
pub mod settings;
pub mod shared_memo;
