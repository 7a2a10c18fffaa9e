//! Sweeps over every knob: whether the knobs that the model ranks first are good ones.

use std::fmt;
use std::path::Path;

use anyhow::{Result, anyhow};
use dynamiccl_env::measure::sweep::{self, Sweep};
use dynamiccl_env::swept::SweptError;
use dynamiccl_env::validate::sweeps::{Fidelity, PreparedSweep, SweepReport};
use serde::Serialize;

use super::{Model, figure};
use crate::session::Session;
use crate::table::{Column, Table};

/// Reports on the sweeps of a folder; answers with their overall decision fidelity.
pub fn run(path: &Path, model: &Model, session: &Session) -> Result<Option<f64>> {
    let read = sweep::read(path)?;
    let prepared: Vec<PreparedSweep> = read.iter().map(prepare).collect::<Result<_>>()?;
    let notes = prepared.iter().flat_map(PreparedSweep::notes);
    notes.for_each(|note| session.output.note(format_args!("{note}")));
    let progress = session.progress("validate", prepared.len() as u64);
    let mut reports = Vec::new();
    for sweep in &prepared {
        reports.push(sweep.report(&model.constants));
        progress.advance(1)?;
    }
    drop(progress);
    let report = Report::new(&reports, model);
    session.report("validate", &report)?;
    Ok(report.overall.decision_fidelity)
}

/// The sweep as the model can be asked about it.
fn prepare(sweep: &Sweep) -> Result<PreparedSweep> {
    PreparedSweep::new(sweep).map_err(|error| match error {
        SweptError::Machine { file } => anyhow!(
            "{}: its ranks had a GPU each, and sweeps of ranks that share one are compared here; leave it out, or judge it \
             with `dynamiccl eval --workload {} --clusters NAME`",
            file.display(),
            file.display()
        ),
        SweptError::Cluster(error) => anyhow!("{}: {error}", sweep.file.display()),
        error => error.into(),
    })
}

/// How every sweep agrees with the model.
#[derive(Debug, Serialize)]
struct Report {
    sweeps: Vec<Row>,
    overall: Figures,
    constants: String,
}

/// How one sweep agrees.
#[derive(Debug, Serialize)]
struct Row {
    file: String,
    ranks: u32,
    link: String,
    #[serde(flatten)]
    figures: Figures,
}

/// The figures of some cells; none without a cell.
#[derive(Debug, Serialize)]
struct Figures {
    cells: usize,
    median_abs_log_error: Option<f64>,
    decision_fidelity: Option<f64>,
    nccl_decision: Option<f64>,
}

impl Report {
    fn new(reports: &[SweepReport], model: &Model) -> Self {
        let row = |report: &SweepReport| Row {
            file: report.file.clone(),
            ranks: report.ranks,
            link: report.link.to_string(),
            figures: Figures::of([report]),
        };
        Report {
            sweeps: reports.iter().map(row).collect(),
            overall: Figures::of(reports),
            constants: model.name.clone(),
        }
    }
}

impl Figures {
    fn of<'a>(reports: impl IntoIterator<Item = &'a SweepReport>) -> Self {
        let fidelity = Fidelity::of(reports);
        Figures {
            cells: fidelity.map_or(0, |f| f.cells),
            median_abs_log_error: fidelity.map(|f| f.median_abs_log_error),
            decision_fidelity: fidelity.map(|f| f.decision_fidelity),
            nccl_decision: fidelity.and_then(|f| f.nccl_decision),
        }
    }

    fn row(&self, [file, ranks, link]: [String; 3]) -> [String; 7] {
        let Figures { cells, median_abs_log_error, decision_fidelity, nccl_decision } = self;
        let [error, first, nccl] =
            [median_abs_log_error, decision_fidelity, nccl_decision].map(|v| figure(*v));
        [file, ranks, link, cells.to_string(), error, first, nccl]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            Column::left("sweep"),
            Column::right("ranks"),
            Column::left("link"),
            Column::right("cells"),
            Column::right("error").unit("(|ln|)"),
            Column::right("model").unit("(÷ best)"),
            Column::right("nccl").unit("(÷ best)"),
        ]);
        for row in &self.sweeps {
            table.row(row.figures.row([row.file.clone(), row.ranks.to_string(), row.link.clone()]));
        }
        table.row(self.overall.row(["overall".to_owned(), String::new(), String::new()]));
        writeln!(
            f,
            "# the model (constants {}) against measured sweeps; a cell is collective × size",
            self.constants
        )?;
        writeln!(f, "# error: median over settings; model, nccl: measured time of the choice over the best")?;
        write!(f, "#\n{table}")?;
        self.overall.summary(f)
    }
}

impl Figures {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(model) = self.decision_fidelity else {
            return writeln!(f, "Summary  no cell has a setting to choose");
        };
        let cells = self.cells;
        write!(
            f,
            "Summary  the model's first choice takes {model:.3} times the best measured in {cells} cells"
        )?;
        if let Some(nccl) = self.nccl_decision {
            write!(f, "; NCCL's own takes {nccl:.3}")?;
        }
        writeln!(f)
    }
}
