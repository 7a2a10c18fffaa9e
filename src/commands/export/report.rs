//! What `export` says about what it wrote.

use std::fmt;

use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::nccl::Version;
use dynamiccl_env::recall::Recalled;
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
    /// The hash of the policy that was read.
    source_hash: String,
    /// The hash of the policy that was written, or whose table was.
    hash: String,
    format: ExportFormat,
    history: Option<History>,
    table: Option<Rules>,
    out: String,
}

#[derive(Debug, Serialize)]
struct History {
    trace: String,
    calls: usize,
    measured: usize,
}

/// A table that was written.
#[derive(Debug, Serialize)]
pub struct Rules {
    cluster: String,
    nodes: u32,
    ranks: u32,
    nccl_version: Version,
    rules: usize,
    collectives: Vec<ByCollective>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ByCollective {
    collective: Collective,
    rules: usize,
}

impl Report {
    /// The report of what was written.
    pub fn new(
        args: &ExportArgs,
        source: &Frozen,
        written: &Frozen,
        recalled: Option<Recalled>,
        table: Option<Rules>,
    ) -> Self {
        let trace = args.history.as_deref().map(name).unwrap_or_default();
        let hash = |frozen: &Frozen| format!("{:016x}", frozen.hash());
        Report {
            policy: source.about.name.clone(),
            source_hash: hash(source),
            hash: hash(written),
            format: args.format,
            history: recalled.map(|Recalled { calls, measured }| History { trace, calls, measured }),
            table,
            out: name(&args.out),
        }
    }
}

impl Rules {
    /// What there is to say about a table.
    pub fn new(cluster: &Cluster, asking: &Asking, export: &Export) -> Self {
        let communicator = asking.communicator();
        let count = |collective| export.table.rules().filter(|rule| rule.collective == collective).count();
        let by_collective = |collective| ByCollective { collective, rules: count(collective) };
        let more = "the policy also chooses chunk sizes, threads or paths, which a table cannot say";
        Rules {
            cluster: cluster.name.clone(),
            nodes: communicator.nodes(),
            ranks: communicator.ranks(),
            nccl_version: communicator.version(),
            rules: export.table.rules().count(),
            collectives: Collective::TUNED.map(by_collective).into(),
            notes: export.more.then(|| more.to_owned()).into_iter().collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# policy {} {}", self.policy, self.source_hash)?;
        if let Some(History { trace, calls, measured }) = &self.history {
            writeln!(
                f,
                "# shown {calls} calls of {trace}, {measured} with their time; it is now {}",
                self.hash
            )?;
        }
        let out = &self.out;
        let Some(table) = &self.table else {
            return writeln!(f, "Summary  wrote policy {} to {out}", self.hash);
        };
        for note in &table.notes {
            writeln!(f, "# note: {note}")?;
        }
        let nodes = counted(table.nodes, "node");
        writeln!(f, "Summary  wrote {} rules for {nodes} of {} to {out}", table.rules, table.cluster)?;
        writeln!(f, "         use it with NCCL_TUNER_CONFIG_FILE={out}")
    }
}
