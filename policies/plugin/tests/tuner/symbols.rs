//! What the library exports.

use std::process::Command;

use dynamiccl_spec::driven::DRIVER;

use crate::host::library;

/// All of it. NCCL finds interfaces by name, and `live` the driver; whatever else is exported is a promise that
/// we never made.
const EXPORTED: &[&str] = &[
    DRIVER,
    "ncclEnvPlugin_v1",
    "ncclEnvPlugin_v2",
    "ncclProfiler_v1",
    "ncclProfiler_v2",
    "ncclProfiler_v3",
    "ncclProfiler_v4",
    "ncclProfiler_v5",
    "ncclProfiler_v6",
    "ncclTunerPlugin_v2",
    "ncclTunerPlugin_v3",
    "ncclTunerPlugin_v4",
    "ncclTunerPlugin_v5",
    "ncclTunerPlugin_v6",
    "ncclTunerPlugin_v7",
];

#[test]
fn the_tables_are_exported_and_nothing_else() {
    let output = Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library()).output();
    let output = String::from_utf8(output.expect("nm is there").stdout).expect("names are text");
    let mut names: Vec<&str> = output.lines().filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    assert_eq!(names, EXPORTED);
}
