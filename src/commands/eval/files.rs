//! The files that `eval` writes: every cell as CSV, the table as Markdown, all of it as a page.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use dynamiccl_env::evaluate::{CellReport, Chosen, Report};

use super::html;
use super::text::{TITLES, heading, rows, verdict};
use crate::args::EvalArgs;
use crate::atomic::OutFile;

const CSV_HEADER: &str = "cluster,nodes,tier,held_out,collective,bytes,tuner,speedup,regret,regret_hold,\
                          share,algo,proto,channels,threads,chunk_bytes,best_algo,best_proto,best_channels,\
                          best_threads,best_chunk_bytes";

/// Files under way.
pub struct Files {
    csv: Option<OutFile>,
    markdown: Option<OutFile>,
    html: Option<OutFile>,
}

impl Files {
    /// Makes sure, before the work, that they can be written.
    pub fn create(args: &EvalArgs) -> Result<Self> {
        let create = |file: &Option<PathBuf>| file.as_deref().map(OutFile::create).transpose();
        let (csv, markdown, html) = (create(&args.csv)?, create(&args.markdown)?, create(&args.html)?);
        Ok(Files { csv, markdown, html })
    }

    /// Writes them.
    pub fn write(self, report: &Report, seed: u64) -> Result<()> {
        finish(self.csv, || csv(report))?;
        finish(self.markdown, || markdown(report))?;
        finish(self.html, || html::page(report, seed))
    }
}

fn finish(file: Option<OutFile>, text: impl FnOnce() -> String) -> Result<()> {
    let Some(mut file) = file else { return Ok(()) };
    file.write_all(text().as_bytes()).context("cannot write the result")?;
    file.commit()
}

/// Every tuner in every cell.
fn csv(report: &Report) -> String {
    let mut text = format!("{CSV_HEADER}\n");
    for cell in &report.cells {
        for (tuner, figures) in report.tuners.iter().zip(&cell.tuners) {
            let Some(figures) = figures else { continue };
            let hold = figures.regret_hold.map_or_else(String::new, |hold| format!("{hold:.6}"));
            text += &format!(
                "{},{},{:.6},{:.6},{hold},{:.4},{},{}\n",
                cell_words(cell),
                tuner.name,
                figures.speedup,
                figures.regret,
                figures.chosen.share,
                launch(&figures.chosen),
                launch(&cell.best),
            );
        }
    }
    text
}

fn cell_words(cell: &CellReport) -> String {
    let CellReport { place, tier, held_out, .. } = cell;
    format!("{},{},{tier},{held_out},{},{}", place.cluster, place.nodes, place.collective, place.bytes)
}

fn launch(chosen: &Chosen) -> String {
    let run = &chosen.realised;
    let pair = run.pair;
    format!("{},{},{},{},{}", pair.algorithm, pair.protocol, run.channels, run.threads, run.chunk_bytes)
}

/// The table and the verdicts.
fn markdown(report: &Report) -> String {
    let mut text = format!("{}.\n\n| {} |\n|", heading(report), TITLES.join(" | "));
    text += &TITLES.map(|_| "---|").concat();
    text.push('\n');
    for row in rows(report) {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text.push('\n');
    for tuner in &report.tuners {
        text += &format!("- {}\n", verdict(tuner));
    }
    text
}
