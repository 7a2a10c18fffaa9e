//! The library that NCCL loads. It holds the only ABI code of the project and nothing that decides:
//! decisions come from `dynamiccl-policies`.

pub mod float_mode;
pub mod logger;
mod profiler;
