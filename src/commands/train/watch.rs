//! What a person sees while a run trains: a remark beside the bar, and a row of a table now and then.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use dynamiccl_agent::progress::{Seconds, Update};
use dynamiccl_agent::subject::{Figures, Verdict};
use dynamiccl_agent::training::{Event, Training};

use super::lesson::{Column, Lesson};
use crate::progress::Progress;
use crate::words::percent;

/// Time between two rows, where no judgement makes one.
const ROW_EVERY: Duration = Duration::from_secs(30);
/// Rows after which the heading comes again.
const HEADING_EVERY: usize = 20;
/// What is shown where there is nothing.
const NOTHING: &str = "-";

/// What was seen of a run.
pub struct Watch<L> {
    stages: Vec<String>,
    columns: Vec<Column>,
    best: Option<f64>,
    /// What the last judgement found.
    judged: Figures,
    update: Option<Box<Update>>,
    seconds: Seconds,
    rows: usize,
    row_at: Instant,
    of: PhantomData<L>,
}

impl<L: Lesson> Watch<L> {
    /// Nothing seen yet of a run.
    pub fn new(training: &Training<L>) -> Self {
        Watch {
            stages: training.stages().iter().map(|stage| L::name(stage).to_owned()).collect(),
            columns: training.subject().columns(),
            best: None,
            judged: Figures::new(),
            update: None,
            seconds: Seconds::default(),
            rows: 0,
            row_at: Instant::now(),
            of: PhantomData,
        }
    }

    /// Shows what has happened.
    pub fn see(&mut self, event: &Event<L::Verdict>, progress: &Progress) {
        match event {
            Event::Updated(update) => {
                let Seconds { env, act, learn, .. } = update.seconds;
                self.seconds.env += env;
                self.seconds.act += act;
                self.seconds.learn += learn;
                self.update = Some(update.clone());
                progress.remark(&self.remark(update.stage));
                if self.row_at.elapsed() >= ROW_EVERY {
                    self.row(progress);
                }
            }
            Event::Judged { verdict, seconds, stage, .. } => {
                self.seconds.eval += seconds;
                self.judged = verdict.figures();
                let now = verdict.regret();
                self.best = Some(self.best.map_or(now, |best| best.min(now)));
                progress.remark(&self.remark(*stage));
                self.row(progress);
            }
            Event::Promoted { from, to, regret, passed, .. } => {
                let [from, to] = [*from, *to].map(|stage| &self.stages[stage]);
                let why = if *passed { "passed" } else { "out of steps" };
                progress.say(&format!("# {from} {why} with a regret of {} %, now {to}", percent(*regret)));
                self.best = None;
            }
            Event::Done { .. } => {}
        }
    }

    fn remark(&self, stage: usize) -> String {
        let best = self.best.map_or(NOTHING.to_owned(), |best| format!("{} %", percent(best)));
        let watched = L::WATCHED.replace('_', " ");
        format!("{} ({}/{})  best {watched} {best}", self.stages[stage], stage + 1, self.stages.len())
    }

    fn row(&mut self, progress: &Progress) {
        let Some(update) = &self.update else { return };
        if self.rows.is_multiple_of(HEADING_EVERY) {
            progress.say(&self.heading());
        }
        progress.say(&line(' ', &self.cells(update)));
        (self.seconds, self.row_at) = (Seconds::default(), Instant::now());
        self.rows += 1;
    }

    fn heading(&self) -> String {
        let judged = self.columns.iter().map(|column| column.title.clone());
        let rest = ["gain", "entropy", "kl", "env", "act", "learn", "eval"].map(str::to_owned);
        let titles: Vec<String> =
            ["step", "stage"].map(str::to_owned).into_iter().chain(judged).chain(rest).collect();
        let units = titles.iter().map(|title| match title.as_str() {
            "step" | "stage" | "kl" => String::new(),
            "entropy" => "(nat)".to_owned(),
            _ => "(%)".to_owned(),
        });
        format!("{}\n{}", line('#', &titles), line('#', &units.collect::<Vec<_>>()))
    }

    fn cells(&self, update: &Update) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or(NOTHING.to_owned(), percent);
        let mut cells = vec![update.step.to_string(), self.stages[update.stage].clone()];
        let of = |column: &Column| self.judged.get(column.figure)?.get(&column.place).copied();
        cells.extend(self.columns.iter().map(|column| shown(of(column))));
        cells.push(percent(f64::from(update.gain.exp_m1())));
        cells.push(format!("{:.2}", update.losses.entropy.iter().sum::<f32>()));
        cells.push(format!("{:.4}", update.losses.divergence));
        let Seconds { env, act, learn, eval } = self.seconds;
        let sum = (env + act + learn + eval).max(f64::MIN_POSITIVE);
        cells.extend([env, act, learn, eval].map(|part| format!("{:.0}", part / sum * 100.0)));
        cells
    }
}

/// A row whose columns stay where they are from row to row.
fn line(mark: char, cells: &[String]) -> String {
    let width = |at: usize| if at == 0 { 9 } else { 7 };
    let cells = cells.iter().enumerate().map(|(at, cell)| format!("  {cell:>0$}", width(at)));
    format!("{mark}{}", cells.collect::<String>())
}
