//! What `calibrate` says about its fit.

use std::fmt;

use dynamiccl_env::cluster::{Calibration, Cluster};
use dynamiccl_env::nccl::Version;
use serde::Serialize;

use super::fit::{ByCollective, Errors, Fit};
use super::logs::Measured;
use crate::args::CalibrateArgs;
use crate::commands::machine::name;
use crate::table::{Column, Table};
use crate::words::{counted, log_error};

/// A fit and how good it is.
#[derive(Debug, Serialize)]
pub struct Report {
    cluster: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweeps: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<u32>,
    #[serde(skip)]
    place: String,
    nccl_version: Version,
    constants: String,
    /// `rows`, `before` and `after` over everything that was used.
    #[serde(flatten)]
    overall: Errors,
    left_out: usize,
    left_out_why: Vec<LeftOut>,
    collectives: Vec<ByCollective>,
    calibration: Calibration,
    notes: Vec<String>,
    out: String,
}

/// Where the measurements come from.
#[derive(Debug)]
pub struct Source {
    /// Nodes and ranks where all measurements have the same.
    pub shape: Option<(u32, u32)>,
    /// The same in words.
    pub place: String,
    /// The release whose decision explains what ran.
    pub version: Version,
    /// What was noticed on the way.
    pub notes: Vec<String>,
}

impl From<Measured> for Source {
    fn from(measured: Measured) -> Self {
        let Measured { nodes, local, version, notes, .. } = measured;
        let ranks = nodes * local;
        let place = format!("{}, {}", counted(nodes, "node"), counted(ranks, "rank"));
        Source { shape: Some((nodes, ranks)), place, version, notes }
    }
}

#[derive(Debug, Serialize)]
struct LeftOut {
    why: String,
    rows: usize,
}

impl Report {
    /// The report of a fit.
    pub fn new(args: &CalibrateArgs, cluster: &Cluster, source: Source, fit: &Fit) -> Self {
        let why = |(why, &rows): (&String, &usize)| LeftOut { why: why.clone(), rows };
        Report {
            cluster: cluster.name.clone(),
            logs: args.log.iter().map(|log| name(log)).collect(),
            sweeps: args.sweep.iter().map(|sweep| name(sweep)).collect(),
            nodes: source.shape.map(|(nodes, _)| nodes),
            ranks: source.shape.map(|(_, ranks)| ranks),
            place: source.place,
            nccl_version: source.version,
            constants: args.constants.constants.clone(),
            overall: fit.overall,
            left_out: fit.left_out.values().sum(),
            left_out_why: fit.left_out.iter().map(why).collect(),
            collectives: fit.collectives.clone(),
            calibration: fit.cluster.calibration,
            notes: source.notes,
            out: name(&args.out),
        }
    }

    /// Where the factors come from, on one line.
    pub fn provenance(&self) -> String {
        let Report { cluster, nccl_version, constants, place, .. } = self;
        let files = [&self.logs[..], &self.sweeps].concat().join(", ");
        format!("{cluster} fitted to {files} ({place}, NCCL {nccl_version}) with constants {constants}")
    }

    fn factors(&self) -> [(&'static str, f64); 6] {
        let Calibration {
            launch,
            intra_latency,
            intra_bandwidth,
            inter_latency,
            inter_bandwidth,
            channel_rate,
        } = self.calibration;
        [
            ("launch", launch),
            ("intra_latency", intra_latency),
            ("intra_bandwidth", intra_bandwidth),
            ("inter_latency", inter_latency),
            ("inter_bandwidth", inter_bandwidth),
            ("channel_rate", channel_rate),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.provenance())?;
        for note in &self.notes {
            writeln!(f, "# note: {note}")?;
        }
        for LeftOut { why, rows } in &self.left_out_why {
            writeln!(f, "# {rows} rows left out: {why}")?;
        }
        write!(f, "#\n{}", self.errors())?;
        let mut factors = Table::new([Column::left("factor"), Column::right("value")]);
        for (name, value) in self.factors() {
            factors.row([name.to_owned(), format!("{value:.3}")]);
        }
        write!(f, "#\n{factors}")?;
        let Errors { before, after, rows } = self.overall;
        let (before, after) = (log_error(before), log_error(after));
        writeln!(
            f,
            "Summary  on {rows} rows the model was off by {before}, now by {after}; wrote {}",
            self.out
        )
    }
}

impl Report {
    fn errors(&self) -> Table<4> {
        let mut table = Table::new([
            Column::left("collective"),
            Column::right("rows"),
            Column::right("before").unit("(|ln|)"),
            Column::right("after").unit("(|ln|)"),
        ]);
        let mut row = |name: &str, Errors { rows, before, after }: Errors| {
            table.row([name.to_owned(), rows.to_string(), format!("{before:.3}"), format!("{after:.3}")]);
        };
        for one in &self.collectives {
            row(one.collective.name(), one.errors);
        }
        row("overall", self.overall);
        table
    }
}
