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
use super::guard::{Calibration, Tried};
use crate::args::{ExportArgs, ExportFormat};
use crate::commands::machine::name;
use crate::table::{Column, Table};
use crate::words::{counted, quoted};

const MARGINS: [Column; 6] = [
    Column::right("margin"),
    Column::right("speedup").unit("(x)"),
    Column::right("regret").unit("(%)"),
    Column::right("hold").unit("(%)"),
    Column::right("worst").unit("(x)"),
    Column::right("left").unit("(%)"),
];

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
    guard: Option<Calibration>,
    table: Option<Rules>,
    out: String,
}

/// What was made on the way.
#[derive(Debug)]
pub struct Made {
    /// What the policy was shown.
    pub recalled: Option<Recalled>,
    /// How its guard was calibrated.
    pub guard: Option<Calibration>,
    /// The table that was written.
    pub table: Option<Rules>,
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
        Made { recalled, guard, table }: Made,
    ) -> Self {
        let trace = args.history.as_deref().map(name).unwrap_or_default();
        let hash = |frozen: &Frozen| format!("{:016x}", frozen.hash());
        Report {
            policy: source.about.name.clone(),
            source_hash: hash(source),
            hash: hash(written),
            format: args.format,
            history: recalled.map(|Recalled { calls, measured }| History { trace, calls, measured }),
            guard,
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
        let more = "the policy also chooses threads or paths, which a table cannot say";
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
        if let Some(guard) = &self.guard {
            write!(f, "{guard}")?;
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
        writeln!(f, "         use it with NCCL_TUNER_CONFIG_FILE={}", quoted(out))
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calibration { from, margin, safe, machines, worlds, margins } = self;
        writeln!(
            f,
            "# simulated: margins of the guard on {machines} machines in {worlds} worlds of their own\n#"
        )?;
        let mut table = Table::new(MARGINS);
        margins.iter().for_each(|tried| table.row(row(tried)));
        write!(f, "{table}")?;
        let why =
            if *safe { "" } else { "; no margin keeps every cell at 0.98 of NCCL, this one loses least" };
        writeln!(f, "# margin {from} becomes {margin}{why}")
    }
}

fn row(tried: &Tried) -> [String; MARGINS.len()] {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    [
        tried.margin.to_string(),
        format!("{:.4}", tried.speedup),
        percent(tried.regret),
        percent(tried.regret_hold),
        format!("{:.3}", tried.worst_cell),
        percent(tried.fallback_share),
    ]
}
