//! Published tables: how far modelled times are from what people measured.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Result;
use dynamiccl_env::measure::tables::{self, Health};
use dynamiccl_env::validate::Describer;
use dynamiccl_env::validate::tables::{Overall, PreparedTable, Skipped, TableReport};
use serde::Serialize;

use super::{Model, figure};
use crate::session::Session;
use crate::table::{Column, Table};
use crate::words::{counted, log_error};

/// Reports on the tables of a folder; answers with the model's error over the healthy ones.
pub fn run(folder: &Path, model: &Model, session: &Session) -> Result<Option<f64>> {
    let read = tables::read(folder)?;
    let progress = session.progress("validate", read.len() as u64);
    let (mut reports, mut skipped) = (Vec::new(), Vec::new());
    let mut describer = Describer::default();
    for table in &read {
        progress.remark(&table.id);
        match PreparedTable::new(table, &mut describer) {
            Ok(prepared) => reports.push(prepared.report(&model.constants)),
            Err(reason) => skipped.push(reason),
        }
        progress.advance(1)?;
    }
    drop(progress);
    for Skipped { id, why } in &skipped {
        session.output.detail(format_args!("{id} skipped: {why}"));
    }
    let report = Report::new(&reports, &skipped, model);
    session.report("validate", &report)?;
    Ok(report.overall.zero_shot)
}

/// How far the forecasts are off; all errors are medians of absolute logs.
#[derive(Debug, Serialize)]
struct Report {
    tables: Vec<Row>,
    /// Tables of machines that ran as they should.
    overall: Medians,
    /// The others, by health.
    other: Vec<Other>,
    skipped: Vec<Left>,
    constants: String,
    #[serde(skip)]
    sources: Vec<Source>,
}

#[derive(Debug, Serialize)]
struct Row {
    table_id: String,
    health: &'static str,
    rows: usize,
    nccl: f64,
    zero_shot: f64,
    calibrated: Option<f64>,
}

/// Medians over some tables; none without a table.
#[derive(Debug, Clone, Copy, Serialize)]
struct Medians {
    tables: usize,
    nccl: Option<f64>,
    zero_shot: Option<f64>,
    calibrated: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Other {
    health: &'static str,
    #[serde(flatten)]
    medians: Medians,
}

/// The tables of one source that are alike in health.
#[derive(Debug)]
struct Source {
    name: String,
    health: &'static str,
    medians: Medians,
}

#[derive(Debug, Serialize)]
struct Left {
    table_id: String,
    why: String,
}

impl Report {
    fn new(reports: &[TableReport], skipped: &[Skipped], model: &Model) -> Self {
        let of = |health| Medians::of(reports.iter().filter(move |report| report.health == health));
        let others = [Health::Unknown, Health::Partly, Health::No];
        let others = others.map(|health| Other { health: health_word(health), medians: of(health) });
        let left = |skipped: &Skipped| Left { table_id: skipped.id.clone(), why: skipped.why.clone() };
        Report {
            tables: reports.iter().map(Row::new).collect(),
            overall: of(Health::Yes),
            other: others.into_iter().filter(|other| other.medians.tables > 0).collect(),
            skipped: skipped.iter().map(left).collect(),
            constants: model.name.clone(),
            sources: by_source(reports),
        }
    }

    /// How many tables were skipped, by reason.
    fn reasons(&self) -> BTreeMap<&str, u32> {
        self.skipped.iter().fold(BTreeMap::new(), |mut reasons, left| {
            *reasons.entry(left.why.as_str()).or_default() += 1;
            reasons
        })
    }
}

impl Row {
    fn new(report: &TableReport) -> Self {
        Row {
            table_id: report.id.clone(),
            health: health_word(report.health),
            rows: report.rows,
            nccl: report.nccl,
            zero_shot: report.zero_shot,
            calibrated: report.calibrated,
        }
    }
}

impl Medians {
    fn of<'a>(reports: impl Iterator<Item = &'a TableReport> + Clone) -> Self {
        let overall = Overall::of(reports);
        Medians {
            tables: overall.map_or(0, |o| o.tables),
            nccl: overall.map(|o| o.nccl),
            zero_shot: overall.map(|o| o.zero_shot),
            calibrated: overall.and_then(|o| o.calibrated),
        }
    }

    fn row(&self, source: &str, health: &str) -> [String; 6] {
        let [nccl, zero_shot, calibrated] = [self.nccl, self.zero_shot, self.calibrated].map(figure);
        [source.to_owned(), health.to_owned(), self.tables.to_string(), nccl, zero_shot, calibrated]
    }
}

/// Medians by source and health, in the order of their names. A table's source is the start of its id.
fn by_source(reports: &[TableReport]) -> Vec<Source> {
    let mut groups: BTreeMap<(&str, &'static str), Vec<&TableReport>> = BTreeMap::new();
    for report in reports {
        let source = report.id.split('_').next().unwrap_or(&report.id);
        groups.entry((source, health_word(report.health))).or_default().push(report);
    }
    let source = |((name, health), reports): ((&str, _), Vec<&TableReport>)| Source {
        name: name.to_owned(),
        health,
        medians: Medians::of(reports.iter().copied()),
    };
    groups.into_iter().map(source).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            Column::left("source"),
            Column::left("healthy"),
            Column::right("tables"),
            Column::right("nccl").unit("(|ln|)"),
            Column::right("zero-shot").unit("(|ln|)"),
            Column::right("calibrated").unit("(|ln|)"),
        ]);
        for Source { name, health, medians } in &self.sources {
            table.row(medians.row(name, health));
        }
        table.row(self.overall.row("overall", health_word(Health::Yes)));
        for Other { health, medians } in &self.other {
            table.row(medians.row("apart", health));
        }
        writeln!(
            f,
            "# the model (constants {}) against measured tables; medians over tables of",
            self.constants
        )?;
        writeln!(
            f,
            "# the median |ln(forecast ÷ measured)|; calibrated: judged on sizes that were not fitted"
        )?;
        write!(f, "#\n{table}")?;
        for (why, count) in self.reasons() {
            writeln!(f, "# {} skipped: {why}", counted(count, "table"))?;
        }
        self.summary(f)
    }
}

impl Report {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Medians { tables, nccl, zero_shot, calibrated } = self.overall;
        let Some((nccl, zero_shot)) = nccl.zip(zero_shot) else {
            return writeln!(f, "Summary  no table of a machine that ran as it should");
        };
        write!(f, "Summary  on {tables} healthy tables the model is off by {}", log_error(zero_shot))?;
        if let Some(calibrated) = calibrated {
            write!(f, ", calibrated by {}", log_error(calibrated))?;
        }
        writeln!(f, "; NCCL's own formula by {}", log_error(nccl))
    }
}

fn health_word(health: Health) -> &'static str {
    match health {
        Health::Yes => "yes",
        Health::No => "no",
        Health::Partly => "partly",
        Health::Unknown => "unknown",
    }
}
