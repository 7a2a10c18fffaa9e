//! v6 (NCCL 2.29 and 2.30): v5 and the collectives of copy engines, which no tuner decides on and which are
//! not asked for.

use super::v5::{self, TABLE};

/// What NCCL 2.29 and newer look for.
#[unsafe(export_name = "ncclProfiler_v6")]
pub static PROFILER: v5::Profiler = TABLE;
