//! What users must be able to read.

const PAGE: &str = include_str!("../../../../docs/plugin.md");

#[test]
fn every_variable_mode_and_limit_is_documented() {
    for word in [
        "DYNAMICCL_POLICY",
        "DYNAMICCL_CONTEXT",
        "DYNAMICCL_EXPECT",
        "DYNAMICCL_MODE",
        "DYNAMICCL_DETERMINISTIC",
        "DYNAMICCL_STRICT",
        "`act`",
        "`observe`",
        "`off`",
        "`driven`",
        "dynamicclDriver_v1",
        "`walk`",
        "[[communicator]]",
        // Fact 12: no plugin can help it, so it must be said.
        "NCCL_CTA_POLICY_EFFICIENCY",
        "NCCL_TUNER_PLUGIN",
    ] {
        assert!(PAGE.contains(word), "docs/plugin.md says nothing of {word}");
    }
}
