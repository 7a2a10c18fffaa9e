//! What users must be able to read.

const PAGE: &str = include_str!("../../../../docs/plugin.md");

#[test]
fn every_variable_is_documented() {
    for word in [
        "NCCL_PROFILER_PLUGIN",
        "NCCL_ENV_PLUGIN",
        "DYNAMICCL_PROFILE",
        "DYNAMICCL_PROFILE_MAX_MB",
        "DYNAMICCL_PROFILE_KERNELS",
        "DYNAMICCL_PROMETHEUS",
        "DYNAMICCL_PROMETHEUS_SECONDS",
        "DYNAMICCL_NTHREADS",
        "DYNAMICCL_BUFFSIZE",
        "[launch]",
        "* `gpu`: from",
        "* `host`: the same",
        "* `launch`: only",
    ] {
        assert!(PAGE.contains(word), "docs/plugin.md says nothing of {word}");
    }
}
