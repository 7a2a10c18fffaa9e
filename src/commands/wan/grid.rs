//! The four modes over the chunks and delays of the study.

use std::fmt;

use anyhow::Result;
use dynamiccl_env::wan::Setting;
use serde::Serialize;

use super::modes::{self, Figures};
use super::page;
use super::plan::{About, Plan};
use crate::atomic::OutFile;
use crate::session::Session;
use crate::table::{Column, Table};

/// MB of a chunk.
pub const CHUNKS: [f64; 4] = [8.0, 16.0, 32.0, 64.0];
/// ms between datacentres.
pub const DELAYS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
/// Collectives of a cell.
const COLLECTIVES: u64 = 20_000;

/// Runs every cell and reports.
pub fn run(plan: &Plan<'_>, session: &Session) -> Result<()> {
    let file = plan.args.html.as_deref().map(OutFile::create).transpose()?;
    let collectives = plan.collectives(COLLECTIVES);
    let progress = session.progress("wan", collectives * (CHUNKS.len() * DELAYS.len()) as u64);
    let mut cells = Vec::new();
    for (delay_ms, chunk_mb) in DELAYS.into_iter().flat_map(|delay| CHUNKS.map(|chunk| (delay, chunk))) {
        let setting = Setting { chunk_mb, delay_ms, ..plan.setting.clone() };
        let cell = Plan { args: plan.args, setting };
        let modes = modes::measured(&cell, collectives, session.seed, &progress)?;
        cells.push(Cell { chunk_mb, delay_ms, modes });
    }
    let document = Document { about: plan.about(collectives), cadence: plan.args.cadence, cells };
    // What was worked out is told even where the page cannot be written.
    let told = session.report("wan", &document);
    if let Some(file) = file {
        file.finish(page::of_grid(&document, session.seed).as_bytes())?;
    }
    told
}

/// One chunk and one delay.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// MB of a chunk.
    pub chunk_mb: f64,
    /// ms between datacentres.
    pub delay_ms: f64,
    /// The modes.
    pub modes: Vec<Figures>,
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Document {
    /// What was run.
    #[serde(flatten)]
    pub about: About,
    /// Collectives from one rebuilding to the next.
    pub cadence: u64,
    /// Every chunk with every delay.
    pub cells: Vec<Cell>,
}

impl Cell {
    /// Whether both beat routes, routes beat rings and rings beat nothing.
    pub fn in_order(&self) -> bool {
        self.modes.is_sorted_by(|a, b| a.mean_ms > b.mean_ms)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.about.heading())?;
        writeln!(f, "# rebuilt every {}\n#", self.cadence)?;
        let mut table = Table::new([
            Column::right("delay").unit("(ms)"),
            Column::right("chunk").unit("(MB)"),
            Column::right("base").unit("(ms)"),
            Column::right("ccl").unit("(ms)"),
            Column::right("wan").unit("(ms)"),
            Column::right("both").unit("(ms)"),
            Column::right("ccl").unit("(%)"),
            Column::right("wan").unit("(%)"),
            Column::right("both").unit("(%)"),
        ]);
        for Cell { chunk_mb, delay_ms, modes } in &self.cells {
            let ms = |at: usize| format!("{:.2}", modes[at].mean_ms);
            let gain = |at: usize| format!("{:.1}", modes[at].gain);
            table.row([
                delay_ms.to_string(),
                chunk_mb.to_string(),
                ms(0),
                ms(1),
                ms(2),
                ms(3),
                gain(1),
                gain(2),
                gain(3),
            ]);
        }
        write!(f, "{table}")?;
        let ordered = self.cells.iter().filter(|cell| cell.in_order()).count();
        let all = self.cells.len();
        writeln!(f, "Summary  both < wan < ccl < base in {ordered} of {all} cells (simulated)")
    }
}
