//! The library that NCCL loads. It holds the only ABI code of the project and nothing that decides:
//! decisions come from `dynamiccl-policies`. It exports no symbol yet, so NCCL leaves it alone.

pub mod float_mode;
pub mod logger;
