//! The library that NCCL loads. It holds the only ABI code of the project and nothing that decides:
//! decisions come from `dynamiccl-policies`.
//!
//! `abi`, `env_plugin` and `profiler` begin with what NCCL sees: thin functions that never fail, never
//! unwind and hand on to the safe code beside them. The bar is a cluster operator's: it may do nothing, it
//! may never do harm.

pub mod abi;
pub mod deployment;
mod env_plugin;
mod fault;
pub mod float_mode;
mod kept;
pub mod logger;
pub mod policy;
mod profiler;
pub mod settings;
pub mod tuner;
