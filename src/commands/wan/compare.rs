//! Who decides best when to change: cadences, triggers, a learned policy and the clairvoyant, on the same traffic.

use std::fmt;
use std::path::Path;

use anyhow::{Error, Result};
use dynamiccl_env::curriculum::Kind;
use dynamiccl_env::wan::Costs;
use dynamiccl_env::wan::compare::{Comparison, Figures};
use dynamiccl_env::wan::control::{Cadence, Controller, Threshold};
use serde::Serialize;

use super::page;
use super::plan::{About, Plan};
use crate::atomic::OutFile;
use crate::commands::actor;
use crate::session::{Session, cores};
use crate::table::{Column, Table};

/// Collectives of a trace.
const COLLECTIVES: u64 = 2_000;

/// Compares and reports.
pub fn run(plan: &Plan<'_>, policy: &Path, session: &Session) -> Result<()> {
    let mut policy = actor::open(Kind::Wan, policy)?;
    let file = plan.args.html.as_deref().map(OutFile::create).transpose()?;
    let collectives = plan.collectives(COLLECTIVES);
    let costs = Costs { rebuild_ms: plan.args.rebuild_ms, reroute_ms: plan.args.reroute_ms };
    let comparison = Comparison {
        setting: &plan.setting,
        costs,
        rho: plan.args.rho,
        lag: plan.args.lag.into(),
        traces: plan.args.traces.into(),
        collectives: collectives as usize,
        seed: session.seed,
        threads: cores(),
    };
    let progress = session.progress("wan", comparison.steps());
    let step = |collectives| progress.advance(collectives).map_err(Error::from);
    let courses = comparison.courses(step)?;
    let cadence = comparison.best_cadence(&courses, step)?;
    let threshold = comparison.best_threshold(&courses, step)?;
    let mut notes = Vec::new();
    let clairvoyant = match comparison.clairvoyant(&courses, step) {
        Ok(figures) => Some(figures?),
        Err(too_large) => {
            notes.push(format!("no clairvoyant: {too_large}"));
            None
        }
    };
    let judge = |controller: &mut dyn Controller| comparison.judge(&courses, controller, step);
    let document = Document {
        about: plan.about(collectives),
        chunk_mb: plan.setting.chunk_mb,
        delay_ms: plan.setting.delay_ms,
        costs,
        traces: plan.args.traces,
        notes,
        cadence10: judge(&mut { Cadence::STUDY })?,
        best_cadence: cadence.map(|by| Tuned::new(by, judge)).transpose()?,
        threshold: threshold.map(|by| Tuned::new(by, judge)).transpose()?,
        learned: policy.as_mut().map(|policy| judge(policy)).transpose()?,
        clairvoyant,
    };
    // What was worked out is told even where the page cannot be written.
    let told = session.report("wan", &document);
    if let Some(file) = file {
        file.finish(page::of_comparison(&document, session.seed).as_bytes())?;
    }
    told
}

/// Somebody who was tuned on other traffic, and how.
#[derive(Debug, Serialize)]
pub struct Tuned<C> {
    /// What it came to.
    #[serde(flatten)]
    pub figures: Figures,
    /// What was found best.
    pub by: C,
}

impl<C: Controller> Tuned<C> {
    fn new(mut by: C, judge: impl Fn(&mut dyn Controller) -> Result<Figures>) -> Result<Self> {
        Ok(Tuned { figures: judge(&mut by)?, by })
    }
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Document {
    /// What was run.
    #[serde(flatten)]
    pub about: About,
    /// MB of a chunk.
    pub chunk_mb: f64,
    /// ms between datacentres.
    pub delay_ms: f64,
    /// What changes cost.
    #[serde(flatten)]
    pub costs: Costs,
    /// Traces.
    pub traces: u16,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Rebuild every ten, reroute at each.
    pub cadence10: Figures,
    /// The best cadence.
    pub best_cadence: Option<Tuned<Cadence>>,
    /// The best trigger.
    pub threshold: Option<Tuned<Threshold>>,
    /// The learned policy.
    pub learned: Option<Figures>,
    /// The least that any plan could have cost.
    pub clairvoyant: Option<Figures>,
}

impl Document {
    /// Everybody, with a name and what it was tuned to.
    pub fn rows(&self) -> Vec<(&'static str, &Figures, String)> {
        let mut rows = vec![("cadence 10", &self.cadence10, String::new())];
        if let Some(Tuned { figures, by }) = &self.best_cadence {
            let words = format!("rebuild every {}, reroute every {}", by.rebuild, by.reroute);
            rows.push(("best cadence", figures, words.replace("every 0", "never")));
        }
        if let Some(Tuned { figures, by }) = &self.threshold {
            let words = format!("rebuild {}, reroute {}", above(by.rebuild_ms), above(by.reroute_ms));
            rows.push(("threshold", figures, words));
        }
        rows.extend(self.learned.as_ref().map(|figures| ("learned", figures, String::new())));
        rows.extend(self.clairvoyant.as_ref().map(|figures| ("clairvoyant", figures, String::new())));
        rows
    }

    /// The part of the gap between the best cadence and the clairvoyant that somebody closes, in percent.
    pub fn closed(&self, figures: &Figures) -> Option<f64> {
        let (from, to) = (self.best_cadence.as_ref()?.figures.mean_ms, self.clairvoyant.as_ref()?.mean_ms);
        (from > to).then(|| 100.0 * (from - figures.mean_ms) / (from - to))
    }
}

/// What must be gained, with as many digits as somebody reads.
fn above(ms: f64) -> String {
    if ms == Threshold::NEVER {
        return "never".to_owned();
    }
    let short = format!("{ms:.2e}").parse().unwrap_or(ms);
    format!("above {short} ms")
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.about.heading())?;
        let Document { chunk_mb, delay_ms, costs: Costs { rebuild_ms, reroute_ms }, traces, .. } = self;
        writeln!(
            f,
            "# chunks of {chunk_mb} MB, {delay_ms} ms between datacentres; {traces} traces to judge on, as many to tune on"
        )?;
        writeln!(
            f,
            "# rebuilding costs {rebuild_ms} ms, changing a route {reroute_ms} ms; times are with costs"
        )?;
        self.notes.iter().try_for_each(|note| writeln!(f, "# note: {note}"))?;
        let mut table = Table::new([
            Column::left("who"),
            Column::right("mean").unit("(ms)"),
            Column::right("±").unit("(ms)"),
            Column::right("rebuilds").unit("(%)"),
            Column::right("reroutes").unit("(%)"),
            Column::right("gap closed").unit("(%)"),
            Column::left(""),
        ]);
        for (name, figures, words) in self.rows() {
            let some = |value: Option<f64>, digits: usize| {
                value.map_or_else(String::new, |x| format!("{x:.digits$}"))
            };
            let percent = |share: Option<f64>| some(share.map(|share| 100.0 * share), 1);
            table.row([
                name.to_owned(),
                format!("{:.2}", figures.mean_ms),
                some(figures.std_ms, 2),
                percent(figures.rebuilds),
                percent(figures.reroutes),
                some(self.closed(figures), 0),
                words,
            ]);
        }
        write!(f, "#\n{table}")?;
        let rows = self.rows();
        let of_all = rows.iter().filter(|(name, ..)| *name != "clairvoyant");
        let best = of_all.fold(&rows[0], |best, row| if row.1.mean_ms < best.1.mean_ms { row } else { best });
        writeln!(f, "Summary  {} costs least: {:.2} ms a collective (simulated)", best.0, best.1.mean_ms)
    }
}
