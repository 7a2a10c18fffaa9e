//! The host, as far as NCCL's decision distinguishes it.

use serde::{Deserialize, Serialize};

/// CPU vendor, as far as NCCL distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuVendor {
    /// Intel.
    Intel,
    /// AMD.
    Amd,
    /// Different vendors in one communicator.
    Mixed,
    /// Anything else (Grace and other ARM hosts).
    Other,
}

/// CPU architecture, as far as NCCL distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuArch {
    /// x86-64.
    X86,
    /// 64-bit ARM.
    Arm,
    /// POWER.
    Power,
}
