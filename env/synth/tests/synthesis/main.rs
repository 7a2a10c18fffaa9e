//! Schedules from cluster to proof: figures of TuCCL's testbeds, every collective on every kind of machine,
//! mutations, published files, discovery.

#[path = "../../examples/joint/searches.rs"]
mod searches;

mod discovery;
mod everything;
mod figures;
mod mutations;
mod scale;
mod tuning;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_synth::Machine;

/// One of TuCCL's testbeds.
fn testbed(name: &str, nodes: u32) -> Machine {
    let file = format!("{}/clusters/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let cluster = Cluster::load(&file).unwrap();
    Machine::from_cluster(&cluster, nodes, cluster.gpus_per_node).unwrap()
}

/// A built-in cluster.
fn machine(name: &str, nodes: u32, ranks_per_node: u32) -> Machine {
    Machine::from_cluster(&Cluster::load(name).unwrap(), nodes, ranks_per_node).unwrap()
}

/// A file of the test data.
fn data(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}
