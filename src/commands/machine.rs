//! The machine that a command is about: a cluster by name or file, or one made from NCCL's own dumps.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::cluster::search::Span;
use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_env::nccl::graph::Graphs;
use dynamiccl_spec::Overrides;

use crate::args::MachineArgs;

/// Loads the cluster, or makes it from a topology.
pub fn load(args: &MachineArgs) -> Result<Cluster> {
    match (&args.cluster, &args.topo) {
        (Some(cluster), _) => Ok(Cluster::load(cluster)?),
        (None, Some(file)) => {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            Ok(Cluster::from_topology(&stem, &Topology::read(file)?, &name(file))?)
        }
        (None, None) => bail!("no machine: give --cluster NAME|FILE or --topo FILE"),
    }
}

/// Puts dumped graphs in the place of the cluster's, for a communicator of this many nodes.
pub fn replace_graphs(cluster: &mut Cluster, nodes: u32, file: Option<&Path>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let span = if nodes > 1 { Span::Several } else { Span::One };
    cluster.replace_graphs(span, Graphs::read(file)?, &name(file)).with_context(|| name(file))
}

/// The variables of `--env`, as NCCL would read them.
pub fn overrides(assignments: &[(String, String)]) -> Result<Overrides> {
    let mut overrides = Overrides::default();
    for (index, (name, value)) in assignments.iter().enumerate() {
        let again = assignments[..index].iter().any(|(earlier, _)| earlier == name);
        ensure!(!again, "--env {name}={value}: {name} is given twice, give it once");
        overrides.set(name, value).map_err(|error| anyhow!("--env {error}"))?;
    }
    Ok(overrides)
}

/// A path that fits on a line of any text, a comment of a file included.
pub fn name(path: &Path) -> String {
    path.display().to_string().replace(|c: char| c.is_control(), " ")
}
