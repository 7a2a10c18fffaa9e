//! `live sweep`: every setting of every call, timed.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use dynamiccl_live::cell::{Cell, Knobs, grid};
use dynamiccl_live::drift::Drift;
use dynamiccl_live::measure::{CellTimes, Effort};
use dynamiccl_live::sheet::{Conditions, Sheet};
use dynamiccl_live::spread::Ratio;
use dynamiccl_live::sweep::{Again, Plan, Swept, sweep};
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
    let plan = plan(args);
    let bytes = args.calls.sizes.0.iter().copied().max().unwrap_or(0);
    let begun = Instant::now();
    let progress = session.progress("live sweep", plan.cells.len() as u64);
    let mut job = Job::start(&args.job, args.clock.into(), vec![], bytes, session)?;
    let conditions = job.conditions().clone();
    let mut sheet = Sheet::open(&args.out, conditions.clone()).map_err(told)?;
    progress.skip(plan.cells.iter().filter(|cell| sheet.has(**cell)).count() as u64);
    let swept = sweep(&mut job.meter(), &plan, &mut sheet, |cell| {
        progress.remark(&cell.to_string());
        // An interrupt is noticed by the workers' watch, which looks more often.
        let _ = progress.advance(1);
    })
    .map_err(told)?;
    drop(progress);
    job.end()?;
    warn(&swept, session);
    let report = Report {
        conditions,
        out: name(&args.out),
        rows: sheet.rows(),
        cells: swept.cells.iter().filter_map(Line::new).collect(),
        drift: swept.drift.as_ref().map(Drift::factor),
        again: swept.again,
        seconds: begun.elapsed().as_secs_f64(),
    };
    session.report("live sweep", &report)?;
    Ok(Ending::Done)
}

fn plan(args: &SweepArgs) -> Plan {
    Plan {
        cells: grid(&args.calls.collectives, &args.calls.sizes.0),
        knobs: Knobs { channels: args.channels.clone(), chunks: vec![ChunkChoice::Own] },
        effort: Effort {
            least: args.rounds,
            most: args.most_rounds.max(args.rounds),
            bound: args.bound / 100.0,
        },
        budget: Duration::from_secs(args.budget),
    }
}

/// Says what makes times doubtful.
fn warn(swept: &Swept, session: &Session) {
    let Swept { drift: Some(drift), again: Again { off, .. }, .. } = swept else { return };
    if *off > 0 {
        session.output.note(format_args!(
            "warning: the machine was not as usual during {off} cells: {}, measured in between, took {:.2} times as \
             long at one time as at another; is something else running, or does the GPU change its clocks?",
            drift.cell,
            drift.factor()
        ));
    }
}

/// What a sweep found.
#[derive(Debug, Serialize)]
struct Report {
    conditions: Conditions,
    out: String,
    rows: usize,
    cells: Vec<Line>,
    drift: Option<f64>,
    again: Again,
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
            rounds: times.rounds(),
            own_us: own.median(),
            best_us: best.median(),
            best: best.handed.to_string(),
            speedup: times.speedup(),
        })
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
        let Again { anew, off, more, unsure } = self.again;
        if let Some(drift) = self.drift {
            writeln!(
                f,
                "# a reference call in between took {drift:.2} times as long at most as at least: {anew} cells \
                measured anew, {off} still doubtful"
            )?;
        }
        writeln!(f, "# {more} cells got more rounds, {unsure} are still unsure")?;
        writeln!(f, "Summary  {} cells in {:.0} s", self.cells.len(), self.seconds)
    }
}
