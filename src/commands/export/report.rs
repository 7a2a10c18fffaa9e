//! What `export` says about what it wrote.

use std::fmt;

use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::nccl::Version;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_spec::Collective;
use serde::Serialize;

use super::csv::Export;
use crate::args::{ExportArgs, ExportFormat};
use crate::commands::machine::name;
use crate::words::counted;

/// What was exported.
#[derive(Debug, Serialize)]
pub struct Report {
    policy: String,
    hash: String,
    format: ExportFormat,
    out: String,
    #[serde(flatten)]
    written: Written,
}

/// What is in the file.
#[derive(Debug, Default, Serialize)]
pub struct Written {
    /// The hash of the policy that was written.
    exported_hash: Option<String>,
    /// The table that was written.
    table: Option<Rules>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Rules {
    cluster: String,
    nodes: u32,
    ranks: u32,
    nccl_version: Version,
    rules: usize,
    collectives: Vec<ByCollective>,
}

#[derive(Debug, Serialize)]
struct ByCollective {
    collective: Collective,
    rules: usize,
}

impl Report {
    /// The report of what was written.
    pub fn new(args: &ExportArgs, frozen: &Frozen, written: Written) -> Self {
        let (policy, hash) = (frozen.about.name.clone(), format!("{:016x}", frozen.hash()));
        Report { policy, hash, format: args.format, out: name(&args.out), written }
    }
}

impl Written {
    /// A policy.
    pub fn policy(frozen: &Frozen) -> Self {
        Written { exported_hash: Some(format!("{:016x}", frozen.hash())), ..Written::default() }
    }

    /// A table.
    pub fn table(cluster: &Cluster, asking: &Asking, export: &Export) -> Self {
        let communicator = asking.communicator();
        let count = |collective| export.table.rules().filter(|rule| rule.collective == collective).count();
        let rules = Rules {
            cluster: cluster.name.clone(),
            nodes: communicator.nodes(),
            ranks: communicator.ranks(),
            nccl_version: communicator.version(),
            rules: export.table.rules().count(),
            collectives: Collective::TUNED
                .map(|collective| ByCollective { collective, rules: count(collective) })
                .into(),
        };
        let more = "the policy also chooses chunk sizes, threads or paths, which a table cannot say";
        let notes = export.more.then(|| more.to_owned()).into_iter().collect();
        Written { exported_hash: None, table: Some(rules), notes }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# policy {} {}", self.policy, self.hash)?;
        for note in &self.written.notes {
            writeln!(f, "# note: {note}")?;
        }
        let out = &self.out;
        match (&self.written.table, &self.written.exported_hash) {
            (Some(table), _) => {
                let (rules, nodes) = (counted(table.rules as u32, "rule"), counted(table.nodes, "node"));
                writeln!(f, "Summary  wrote {rules} for {nodes} of {} to {out}", table.cluster)?;
                writeln!(f, "         use it with NCCL_TUNER_CONFIG_FILE={out}")
            }
            (None, hash) => {
                writeln!(f, "Summary  wrote policy {} to {out}", hash.as_deref().unwrap_or(&self.hash))
            }
        }
    }
}
