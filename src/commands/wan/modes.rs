//! The four modes on one setting.

use std::fmt;

use anyhow::Result;
use dynamiccl_env::wan::Mode;
use serde::Serialize;

use super::page;
use super::plan::{About, Plan};
use crate::atomic::OutFile;
use crate::progress::Progress;
use crate::session::Session;
use crate::table::{Column, Table};

/// Collectives of the study.
const COLLECTIVES: u64 = 100_000;
/// Collectives between two reports of progress.
const CHUNK: u64 = 500;

/// Runs the modes and reports.
pub fn run(plan: &Plan<'_>, session: &Session) -> Result<()> {
    let file = plan.args.html.as_deref().map(OutFile::create).transpose()?;
    let collectives = plan.collectives(COLLECTIVES);
    let progress = session.progress("wan", collectives);
    let modes = measured(plan, collectives, session.seed, &progress)?;
    let setting = &plan.setting;
    let document = Document {
        about: plan.about(collectives),
        chunk_mb: setting.chunk_mb,
        delay_ms: setting.delay_ms,
        cadence: plan.args.cadence,
        modes,
    };
    // What was worked out is told even where the page cannot be written.
    let told = session.report("wan", &document);
    if let Some(file) = file {
        file.finish(page::of_modes(&document, session.seed).as_bytes())?;
    }
    told
}

/// The figures of each mode.
pub fn measured(plan: &Plan<'_>, collectives: u64, seed: u64, progress: &Progress) -> Result<Vec<Figures>> {
    let mut run = plan.modes(seed).begin(&plan.setting, plan.search());
    while run.done() < collectives {
        let more = CHUNK.min(collectives - run.done());
        run.run(more);
        progress.advance(more)?;
    }
    let means = run.means();
    let figures = Mode::ALL.into_iter().zip(means);
    Ok(figures
        .map(|(mode, mean_ms)| Figures { mode, mean_ms, gain: 100.0 * (1.0 - mean_ms / means[0]) })
        .collect())
}

/// What a mode comes to.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figures {
    /// The mode.
    pub mode: Mode,
    /// Mean ms of a collective.
    pub mean_ms: f64,
    /// Percent less than the first mode.
    pub gain: f64,
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
    /// Collectives from one rebuilding to the next.
    pub cadence: u64,
    /// The modes.
    pub modes: Vec<Figures>,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.about.heading())?;
        let Document { chunk_mb, delay_ms, cadence, .. } = self;
        writeln!(
            f,
            "# chunks of {chunk_mb} MB, {delay_ms} ms between datacentres, rebuilt every {cadence}\n#"
        )?;
        let columns =
            [Column::left("mode"), Column::right("mean").unit("(ms)"), Column::right("gain").unit("(%)")];
        let mut table = Table::new(columns);
        for Figures { mode, mean_ms, gain } in &self.modes {
            table.row([mode.name().to_owned(), format!("{mean_ms:.2}"), format!("{gain:.1}")]);
        }
        write!(f, "{table}")?;
        let best =
            self.modes.iter().fold(&self.modes[0], |best, m| if m.mean_ms < best.mean_ms { m } else { best });
        writeln!(
            f,
            "Summary  {} is the fastest: {:.1} % less than base (simulated)",
            best.mode.name(),
            best.gain
        )
    }
}
