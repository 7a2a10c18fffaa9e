//! The logs of a machine as measurements of one communicator.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::measure::{Log, Row, read_log_as};
use dynamiccl_env::nccl::Version;
use dynamiccl_env::swept::Release;

use crate::args::CalibrateArgs;
use crate::words::counted;

/// What all logs measured together.
#[derive(Debug)]
pub struct Measured {
    /// Nodes of the communicator.
    pub nodes: u32,
    /// Ranks on each.
    pub local: u32,
    /// The release whose decision explains what ran.
    pub version: Version,
    /// The rows of all logs.
    pub rows: Vec<Row>,
    /// What was noticed on the way.
    pub notes: Vec<String>,
}

impl Measured {
    /// Reads the logs and makes sure that they belong to one communicator of this cluster.
    pub fn read(args: &CalibrateArgs, cluster: &Cluster) -> Result<Self> {
        let mut whole: Option<Measured> = None;
        for file in &args.log {
            let one = read_one(args, cluster, file)?;
            match &mut whole {
                None => whole = Some(one),
                Some(whole) => whole.append(one, file, &args.log[0])?,
            }
        }
        let Some(measured) = whole else { bail!("--log: give at least one") };
        Ok(measured)
    }

    fn append(&mut self, other: Measured, file: &Path, first: &Path) -> Result<()> {
        let what = |m: &Measured| {
            format!("{} of {} with NCCL {}", counted(m.nodes, "node"), counted(m.local, "rank"), m.version)
        };
        let (ours, theirs) = (what(self), what(&other));
        let (file, first) = (file.display(), first.display());
        ensure!(
            ours == theirs,
            "{file}: {theirs}, but {first} has {ours}; fit one after the other, the second to the result of the first"
        );
        self.rows.extend(other.rows);
        self.notes.extend(other.notes);
        Ok(())
    }
}

fn read_one(args: &CalibrateArgs, cluster: &Cluster, file: &Path) -> Result<Measured> {
    let log = read_log_as(file, args.collective)?;
    let (nodes, local) = shape(args, cluster, file, &log)?;
    let mut notes = log.warnings.clone();
    let version = match args.nccl {
        Some(version) => version,
        None => release(log.nccl_version.as_deref(), file, &mut notes)?,
    };
    if let Some(stated) = log.nodes.filter(|&stated| stated != nodes) {
        let (hosts, nodes) = (counted(stated, "host"), counted(nodes, "node"));
        notes.push(format!("the log has {hosts}; taken as {nodes} because of --nodes"));
    }
    if let Some(gpu) = log.gpu.as_deref().filter(|gpu| is_other_gpu(gpu, &cluster.gpu.name)) {
        notes.push(format!("measured on {gpu}; cluster {} has {}", cluster.name, cluster.gpu.name));
    }
    let notes = notes.into_iter().map(|note| format!("{}: {note}", file.display())).collect();
    Ok(Measured { nodes, local, version, rows: log.rows, notes })
}

/// Nodes and ranks per node: what the user says, else what the log says, else whole nodes.
fn shape(args: &CalibrateArgs, cluster: &Cluster, file: &Path, log: &Log) -> Result<(u32, u32)> {
    let file = file.display();
    let Some(nodes) = args.nodes.or(log.nodes) else {
        bail!("{file}: it does not say on how many nodes it was measured; give --nodes");
    };
    let local = match (args.ranks_per_node, log.ranks) {
        (Some(local), _) => local,
        (None, Some(ranks)) => ranks.div_ceil(nodes),
        (None, None) => cluster.gpus_per_node,
    };
    let (ranks, gpus) = (u64::from(nodes) * u64::from(local), cluster.gpus_per_node);
    if let Some(stated) = log.ranks {
        ensure!(
            u64::from(stated) == ranks,
            "{file}: {} are not {} of {local}; give --nodes and --ranks-per-node",
            counted(stated, "rank"),
            counted(nodes, "node")
        );
    }
    ensure!(
        local <= gpus,
        "{file}: {ranks} ranks on {} are {local} on each, but cluster {} has {} in a node; \
         give another --cluster, or --nodes",
        counted(nodes, "node"),
        cluster.name,
        counted(gpus, "GPU")
    );
    Ok((nodes, local))
}

/// The release line that comes nearest to what a log states.
fn release(stated: Option<&str>, file: &Path, notes: &mut Vec<String>) -> Result<Version> {
    let Some(stated) = stated else { return Ok(Version::default()) };
    let no_release =
        || format!("{}: \"{stated}\" is no release of NCCL; say with --nccl which it was", file.display());
    let release = Release::of(stated).with_context(no_release)?;
    notes.extend(release.note());
    Ok(release.version)
}

/// Whether a GPU's name in a log lacks the model number that the cluster's GPU has.
fn is_other_gpu(logged: &str, described: &str) -> bool {
    let plain = |name: &str| name.to_uppercase();
    let described = plain(described);
    let mut words = described.split(|c: char| !c.is_alphanumeric());
    let model = words.find(|word| word.contains(|c: char| c.is_ascii_digit()));
    model.is_some_and(|model| !plain(logged).contains(model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_is_not_reproduced_becomes_its_neighbour() {
        let mut notes = Vec::new();
        let mut of = |stated| release(stated, Path::new("x.log"), &mut notes);
        assert_eq!(of(None).unwrap(), Version::V2_30);
        assert_eq!(of(Some("2.29.3")).unwrap(), Version::V2_29);
        assert_eq!(of(Some("2.8.4")).unwrap(), Version::V2_28);
        assert_eq!(of(Some("2.31.0")).unwrap(), Version::V2_30);
        let error = of(Some("banana")).unwrap_err().to_string();
        assert_eq!(error, "x.log: \"banana\" is no release of NCCL; say with --nccl which it was");
        let note = |line, nearest| {
            format!("NCCL {line} is not reproduced; its choices are taken to be those of {nearest}")
        };
        assert_eq!(notes, [note("2.8", "2.28"), note("2.31", "2.30")]);
    }

    #[test]
    fn a_log_of_another_gpu_is_noticed() {
        assert!(!is_other_gpu("NVIDIA A100-SXM4-80GB", "A100-SXM4"));
        assert!(!is_other_gpu("NVIDIA H100 80GB HBM3", "H100 SXM"));
        assert!(is_other_gpu("NVIDIA H100 80GB HBM3", "A100-SXM4"));
        assert!(!is_other_gpu("anything", "a generic GPU"));
    }
}
