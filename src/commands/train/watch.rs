//! What a person sees while a run trains: a remark beside the bar, and a row of a table now and then.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dynamiccl_agent::progress::{Seconds, Update};
use dynamiccl_agent::training::Event;
use dynamiccl_env::curriculum::Stage;
use dynamiccl_env::evaluate::Report;

use crate::progress::Progress;

/// Time between two rows, where no judgement makes one.
const ROW_EVERY: Duration = Duration::from_secs(30);
/// Rows after which the heading comes again.
const HEADING_EVERY: usize = 20;
/// What is shown where there is nothing.
const NOTHING: &str = "-";

/// What was seen of a run.
pub struct Watch {
    stages: Vec<String>,
    tiers: Vec<u8>,
    best: Option<f64>,
    judged: Option<Judged>,
    update: Option<Box<Update>>,
    seconds: Seconds,
    rows: usize,
    row_at: Instant,
}

/// What the last judgement found: regret by tier, and without feedback over all.
struct Judged {
    regret: Vec<Option<f64>>,
    hold: Option<f64>,
}

impl Watch {
    /// Nothing seen yet of these stages.
    pub fn new(stages: &[Arc<Stage>]) -> Self {
        let tiers: BTreeSet<u8> = stages.iter().flat_map(|stage| stage.file.tiers.iter().copied()).collect();
        Watch {
            stages: stages.iter().map(|stage| stage.name.clone()).collect(),
            tiers: tiers.into_iter().collect(),
            best: None,
            judged: None,
            update: None,
            seconds: Seconds::default(),
            rows: 0,
            row_at: Instant::now(),
        }
    }

    /// Shows what has happened.
    pub fn see(&mut self, event: &Event, progress: &Progress) {
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
            Event::Judged { report, seconds, stage, .. } => {
                self.seconds.eval += seconds;
                self.judge(report);
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

    fn judge(&mut self, report: &Report) {
        let Some(policy) = report.tuners.first() else { return };
        let tier = |wanted: &u8| policy.tiers.iter().find(|tier| tier.tier == *wanted);
        let regret = self.tiers.iter().map(|wanted| tier(wanted).map(|tier| tier.figures.regret)).collect();
        let overall = policy.overall.as_ref();
        self.judged = Some(Judged { regret, hold: overall.map(|figures| figures.regret_hold) });
        let now = overall.map_or(f64::INFINITY, |figures| figures.regret);
        self.best = Some(self.best.map_or(now, |best| best.min(now)));
    }

    fn remark(&self, stage: usize) -> String {
        let best = self.best.map_or(NOTHING.to_owned(), |best| format!("{} %", percent(best)));
        format!("{} ({}/{})  best regret {best}", self.stages[stage], stage + 1, self.stages.len())
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
        let tiers = self.tiers.iter().map(|tier| format!("tier{tier}"));
        let rest = ["hold", "gain", "entropy", "kl", "env", "act", "learn", "eval"].map(str::to_owned);
        let titles: Vec<String> =
            ["step", "stage"].map(str::to_owned).into_iter().chain(tiers).chain(rest).collect();
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
        match &self.judged {
            Some(judged) => {
                cells.extend(judged.regret.iter().map(|regret| shown(*regret)));
                cells.push(shown(judged.hold));
            }
            None => cells.extend(vec![NOTHING.to_owned(); self.tiers.len() + 1]),
        }
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

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}
