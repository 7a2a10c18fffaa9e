//! The environment variables of our own that a job may have: what the plugin reads, and `plugin doctor` looks for.

/// The policy: a file, or the shipped one.
pub const POLICY: &str = "DYNAMICCL_POLICY";
/// The deployment file.
pub const CONTEXT: &str = "DYNAMICCL_CONTEXT";
/// The hashes that policy and deployment file must have: every rank gets them from its launcher, and one that has read
/// another file stops.
pub const EXPECT: &str = "DYNAMICCL_EXPECT";
/// act, observe, off or driven. `off` turns every part of the library off.
pub const MODE: &str = "DYNAMICCL_MODE";
/// 1: only algorithms that add in the same order at every call.
pub const DETERMINISTIC: &str = "DYNAMICCL_DETERMINISTIC";
/// 0: what cannot be loaded is left out.
pub const STRICT: &str = "DYNAMICCL_STRICT";
/// Threads of a block, for the environment plugin.
pub const NTHREADS: &str = "DYNAMICCL_NTHREADS";
/// Bytes of the Simple protocol's buffer, for the environment plugin.
pub const BUFFSIZE: &str = "DYNAMICCL_BUFFSIZE";
/// Where records go. Unset: nothing is recorded.
pub const PROFILE: &str = "DYNAMICCL_PROFILE";
/// MiB that a process's records may take.
pub const PROFILE_MAX_MB: &str = "DYNAMICCL_PROFILE_MAX_MB";
/// The most of them.
pub const PROFILE_MOST_MB: u64 = 1 << 20;
/// Whether kernels are timed.
pub const PROFILE_KERNELS: &str = "DYNAMICCL_PROFILE_KERNELS";
/// Where metrics for Prometheus go.
pub const PROMETHEUS: &str = "DYNAMICCL_PROMETHEUS";
/// Seconds between two writings of them.
pub const PROMETHEUS_SECONDS: &str = "DYNAMICCL_PROMETHEUS_SECONDS";
/// The most of them.
pub const PROMETHEUS_MOST_SECONDS: u64 = 86_400;

/// How all of them begin.
pub const PREFIX: &str = "DYNAMICCL_";

/// All of them.
pub const ALL: [&str; 13] = [
    POLICY,
    CONTEXT,
    EXPECT,
    MODE,
    DETERMINISTIC,
    STRICT,
    NTHREADS,
    BUFFSIZE,
    PROFILE,
    PROFILE_MAX_MB,
    PROFILE_KERNELS,
    PROMETHEUS,
    PROMETHEUS_SECONDS,
];
