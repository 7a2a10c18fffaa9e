//! `live sweep`: every setting of every call, timed.

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use dynamiccl_live::cell::{Cell, Knobs, grid};
use dynamiccl_live::measure::{CellTimes, Effort, Measured, Meter};
use dynamiccl_live::spread::Ratio;
use dynamiccl_live::sweep::{Conditions, Drift, Sheet, sweep};
use dynamiccl_spec::{Bytes, ChunkChoice};
use serde::Serialize;

use super::job::{Job, told};
use crate::args::SweepArgs;
use crate::commands::machine::name;
use crate::exit::Ending;
use crate::session::Session;
use crate::table::{Column, Table};

/// Measures what the file does not have.
pub fn run(args: &SweepArgs, session: &Session) -> Result<Ending> {
    let cells = grid(&args.calls.collectives, &args.calls.sizes.0);
    let bytes = args.calls.sizes.0.iter().copied().max().unwrap_or(0);
    let begun = Instant::now();
    let progress = session.progress("live sweep", cells.len() as u64);
    let mut job = Job::start(&args.job, vec![], bytes, session)?;
    let mut sheet = Sheet::open(&args.out, job.conditions().clone()).map_err(told)?;
    progress.skip(cells.iter().filter(|cell| sheet.has(**cell)).count() as u64);
    let knobs = Knobs { channels: args.channels.clone(), chunks: vec![ChunkChoice::Own] };
    let effort =
        Effort { least: args.rounds, most: args.most_rounds.max(args.rounds), bound: args.bound / 100.0 };
    let (mut lines, conditions) = (Vec::new(), job.conditions().clone());
    let mut meter = Meter { crew: job.crew(), load: 0 };
    let drift = sweep(&mut meter, &cells, &knobs, &effort, &mut sheet, |times| {
        lines.extend(Line::new(times));
        progress.remark(&times.cell.to_string());
        // An interrupt is noticed by the workers' watch, which looks more often.
        let _ = progress.advance(1);
    })
    .map_err(told)?;
    job.end()?;
    let (drift, seconds) = (drift_of(&drift), begun.elapsed().as_secs_f64());
    let report =
        Report { conditions, out: name(&args.out), rows: sheet.rows(), cells: lines, drift, seconds };
    session.report("live sweep", &report)?;
    Ok(Ending::Done)
}

fn drift_of(drift: &Drift) -> Option<f64> {
    (!drift.micros.is_empty()).then(|| drift.factor())
}

/// What a sweep found.
#[derive(Debug, Serialize)]
struct Report {
    conditions: Conditions,
    out: String,
    rows: usize,
    cells: Vec<Line>,
    drift: Option<f64>,
    seconds: f64,
}

/// One cell that was measured now.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    cell: Cell,
    settings: usize,
    rounds: usize,
    own_us: f64,
    best_us: f64,
    best: String,
    speedup: Option<Ratio>,
}

impl Line {
    fn new(times: &CellTimes) -> Option<Self> {
        let (own, best) = (times.settings.first()?, times.best()?);
        Some(Line {
            cell: times.cell,
            settings: times.settings.len(),
            rounds: own.rounds.len(),
            own_us: own.median(),
            best_us: best.median(),
            best: knobs_of(best),
            speedup: best.against(own),
        })
    }
}

fn knobs_of(setting: &Measured) -> String {
    match setting.order {
        dynamiccl_spec::Order::Knobs { pair, channels, .. } => {
            format!("{pair} {}", channels.requested().map_or("own".to_owned(), |n| format!("{n}ch")))
        }
        _ => "own".to_owned(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conditions { ranks, link, gpu, nccl, .. } = &self.conditions;
        writeln!(f, "# {ranks} ranks, link {link}, {gpu}, NCCL {nccl}: {} rows in {}", self.rows, self.out)?;
        let mut table = Table::new([
            Column::left("collective"),
            Column::right("size"),
            Column::right("NCCL").unit("(us)"),
            Column::right("best").unit("(us)"),
            Column::left("with"),
            Column::right("faster"),
            Column::right("95 %"),
            Column::right("rounds"),
        ]);
        for line in &self.cells {
            let (ratio, interval) = line.speedup.map_or((String::new(), String::new()), |speedup| {
                (format!("{:.3}", speedup.ratio), format!("{:.3}-{:.3}", speedup.low, speedup.high))
            });
            table.row([
                line.cell.collective.to_string(),
                Bytes(line.cell.bytes).to_string(),
                format!("{:.1}", line.own_us),
                format!("{:.1}", line.best_us),
                line.best.clone(),
                ratio,
                interval,
                line.rounds.to_string(),
            ]);
        }
        write!(f, "{table}")?;
        if let Some(drift) = self.drift {
            writeln!(f, "# the reference call drifted by a factor of {drift:.2}")?;
        }
        writeln!(f, "Summary  {} cells in {:.0} s", self.cells.len(), self.seconds)
    }
}
