//! `live sweep`: every setting of every call, timed.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use dynamiccl_env::once::once;
use dynamiccl_live::cell::{Cell, Tries};
use dynamiccl_live::drift::Drift;
use dynamiccl_live::measure::{CellTimes, Effort};
use dynamiccl_live::sheet::{Columns, Conditions, Sheet, Tried};
use dynamiccl_live::spread::Ratio;
use dynamiccl_live::sweep::{Again, Plan, Swept, sweep};
use dynamiccl_spec::{Bytes, ChunkChoice};
use serde::Serialize;

use super::job::{Job, Wish, told};
use crate::args::SweepArgs;
use crate::atomic::{OutFile, ends_in};
use crate::commands::machine::name;
use crate::exit::Ending;
use crate::session::Session;
use crate::table::{Column, Table};
use crate::words::counted;

/// Measures what the file does not have.
pub fn run(args: &SweepArgs, session: &Session) -> Result<Ending> {
    ends_in("--out", &args.out, &["csv"], "a sweep")?;
    let wishes = wishes(args);
    if let Some(ending) = Job::attend(&args.job, &wishes, session)? {
        return Ok(ending);
    }
    OutFile::probe(&args.out)?;
    let begun = Instant::now();
    let progress = session.progress("live sweep", wishes.iter().map(|wish| wish.cells.len() as u64).sum());
    let (mut sheet, mut report, mut ended) = (None, None, Ok(()));
    for wish in &wishes {
        let mut job = Job::start(&args.job, wish, session)?;
        let plan = plan(args, wish, wishes.len());
        let conditions = Conditions { tried: Tried::of(&plan.tries), ..job.conditions().clone() };
        let sheet = match &mut sheet {
            Some(sheet) => sheet,
            none => none.insert(Sheet::open(&args.out, conditions.clone(), columns(args)).map_err(told)?),
        };
        progress.skip(plan.cells.iter().filter(|cell| plan.is_done(sheet, **cell)).count() as u64);
        let swept = sweep(&mut job.meter(), &plan, sheet, |cell| {
            progress.remark(&cell.to_string());
            // An interrupt is noticed by the workers' watch, which looks more often.
            let _ = progress.advance(1);
        })
        .map_err(told)?;
        ended = job.end();
        warn(&swept, session);
        report.get_or_insert_with(|| Report::new(args, conditions)).add(wish, &swept);
        report.iter_mut().for_each(|report| report.rows = sheet.rows());
        if ended.is_err() {
            break;
        }
    }
    drop(progress);
    if let Some(mut report) = report {
        report.seconds = begun.elapsed().as_secs_f64();
        session.report("live sweep", &report)?;
    }
    // What was measured before is no worse for it.
    ended?;
    Ok(Ending::Done)
}

/// What ranks are started for, once for every count of threads: NCCL reads it once in the life of a process.
fn wishes(args: &SweepArgs) -> Vec<Wish> {
    let threads = once(&args.of_kernels.threads);
    let wish =
        Wish { counts: threads.clone(), beside: args.beside, ..Wish::of(args.clock.into(), &args.calls) };
    if threads.is_empty() {
        return vec![wish];
    }
    let of = |(at, &threads): (usize, &u32)| Wish { threads: Some(threads), start: at + 1, ..wish.clone() };
    threads.iter().enumerate().map(of).collect()
}

fn columns(args: &SweepArgs) -> Columns {
    Columns {
        threads: !args.of_kernels.threads.is_empty(),
        chunks: !args.chunks.is_empty(),
        beside: args.beside.is_some(),
    }
}

fn plan(args: &SweepArgs, wish: &Wish, shifts: usize) -> Plan {
    let chunks = [&[ChunkChoice::Own], &args.chunks[..]].concat();
    Plan {
        cells: wish.cells.clone(),
        tries: Tries { channels: once(&args.channels), chunks: once(&chunks) },
        effort: Effort {
            least: args.rounds,
            most: args.most_rounds.max(args.rounds),
            bound: args.bound / 100.0,
        },
        threads: wish.threads.unwrap_or(0),
        budget: Duration::from_secs(args.budget) / shifts.max(1) as u32,
    }
}

/// Says what makes times doubtful.
fn warn(swept: &Swept, session: &Session) {
    let Swept { drift: Some(drift), again: Again { off, .. }, .. } = swept else { return };
    if *off > 0 {
        session.output.note(format_args!(
            "warning: the machine was not as usual during {}: {}, measured in between, took {:.2} times as \
             long at one time as at another; is something else running, or does the GPU change its clocks?",
            cells(*off),
            drift.cell,
            drift.factor()
        ));
    }
}

fn cells(count: usize) -> String {
    counted(count as u32, "cell")
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
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    settings: usize,
    rounds: usize,
    own_us: f64,
    best_us: f64,
    best: String,
    speedup: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_slowdown: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_slowdown: Option<f64>,
}

impl Line {
    fn new(wish: &Wish, times: &CellTimes) -> Option<Self> {
        let (own, best) = (times.settings.first()?, times.best()?);
        Some(Line {
            cell: times.cell,
            threads: wish.threads,
            settings: times.settings.len(),
            rounds: times.rounds(),
            own_us: own.median(),
            best_us: best.median(),
            best: best.handed.to_string(),
            speedup: times.speedup(),
            own_slowdown: times.slowdown(own),
            best_slowdown: times.slowdown(best),
        })
    }
}

impl Report {
    fn new(args: &SweepArgs, conditions: Conditions) -> Self {
        let (out, again) = (name(&args.out), Again::default());
        Report { conditions, out, rows: 0, cells: Vec::new(), drift: None, again, seconds: 0.0 }
    }

    /// Adds what was found with one count of threads.
    fn add(&mut self, wish: &Wish, swept: &Swept) {
        self.cells.extend(swept.cells.iter().filter_map(|times| Line::new(wish, times)));
        let drift = swept.drift.as_ref().map(Drift::factor);
        self.drift = [self.drift, drift].into_iter().flatten().reduce(f64::max);
        self.again = self.again + swept.again;
    }

    fn table(&self) -> Table<11> {
        let mut table = Table::new([
            Column::left("collective"),
            Column::right("size"),
            Column::right("threads").seldom(),
            Column::right("NCCL").unit("(us)"),
            Column::right("best").unit("(us)"),
            Column::left("with"),
            Column::right("faster"),
            Column::right("95 %"),
            Column::right("compute").unit("(NCCL)").seldom(),
            Column::right("compute").unit("(best)").seldom(),
            Column::right("rounds"),
        ]);
        let slowdown = |slowdown: Option<f64>| slowdown.map_or(String::new(), |ratio| format!("{ratio:.3}"));
        for line in &self.cells {
            let (ratio, interval) = line.speedup.map_or((String::new(), String::new()), |speedup| {
                (format!("{:.3}", speedup.ratio), format!("{:.3}-{:.3}", speedup.low, speedup.high))
            });
            table.row([
                line.cell.collective.to_string(),
                Bytes(line.cell.bytes).to_string(),
                line.threads.map_or(String::new(), |threads| threads.to_string()),
                format!("{:.1}", line.own_us),
                format!("{:.1}", line.best_us),
                line.best.clone(),
                ratio,
                interval,
                slowdown(line.own_slowdown),
                slowdown(line.best_slowdown),
                line.rounds.to_string(),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conditions { ranks, link, gpu, nccl, load, clock, .. } = &self.conditions;
        let (told, out) = (self.conditions.told(), &self.out);
        writeln!(f, "# {ranks} ranks, link {link}, {gpu}, NCCL {nccl}{told}: {} rows in {out}", self.rows)?;
        if *load > 0 {
            let blocks = counted(*load, "multiprocessor");
            writeln!(
                f,
                "# compute beside the calls fills {blocks} of every rank; how many times as long it takes as alone"
            )?;
        }
        if self.cells.iter().any(|line| clock.stops_at_root(line.cell.collective)) {
            writeln!(
                f,
                "# by rank 0's clock, as in published sweeps: a broadcast is done when its root is; for a policy that is to be \
                 used, sweep with --clock slowest"
            )?;
        }
        write!(f, "{}", self.table())?;
        let Again { anew, off, more, unsure } = self.again;
        if let Some(drift) = self.drift {
            writeln!(
                f,
                "# a reference call in between took {drift:.2} times as long at most as at least: {} measured anew, \
                 {off} still doubtful",
                cells(anew)
            )?;
        }
        writeln!(f, "# {} got more rounds; still unsure: {unsure}", cells(more))?;
        writeln!(f, "Summary  {} in {:.0} s", cells(self.cells.len()), self.seconds)
    }
}
