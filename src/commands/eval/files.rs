//! The files that `eval` writes: every cell as CSV, the table as Markdown, all of it as a page.

use std::path::PathBuf;

use anyhow::Result;
use dynamiccl_env::evaluate::{CellReport, Chosen, Report};

use super::html;
use super::text::{TITLES, heading, rows, too_few, verdict};
use crate::args::EvalArgs;
use crate::atomic::{Apart, OutFile};

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
        apart(args)?;
        let create = |file: &Option<PathBuf>| file.as_deref().map(OutFile::create).transpose();
        let (csv, markdown, html) = (create(&args.csv)?, create(&args.markdown)?, create(&args.html)?);
        Ok(Files { csv, markdown, html })
    }

    /// Writes all that can be written; an error where one cannot.
    pub fn write(self, report: &Report, seed: u64) -> Result<()> {
        let finish = |file: Option<OutFile>, text: &dyn Fn() -> String| {
            file.map_or(Ok(()), |file| file.finish(text().as_bytes()))
        };
        let csv = finish(self.csv, &|| csv(report));
        let markdown = finish(self.markdown, &|| markdown(report));
        let html = finish(self.html, &|| html::page(report, seed));
        csv.and(markdown).and(html)
    }
}

/// Makes sure that no file would be written over another, or over what is judged and what it is judged on.
fn apart(args: &EvalArgs) -> Result<()> {
    Apart::default()
        .reads("--policy", &args.policy)
        .reads("--against", &args.against)
        .reads("--clusters", &args.clusters)
        .reads("--workload", [&args.workload])
        .reads("--constants", [&args.constants.constants])
        .writes("--csv", &args.csv)?
        .writes("--markdown", &args.markdown)?
        .writes("--html", &args.html)?;
    Ok(())
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
                quoted(&tuner.name),
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
    let (cluster, nodes) = (quoted(&place.cluster), place.nodes);
    format!("{cluster},{nodes},{tier},{held_out},{},{}", place.collective, place.bytes)
}

/// A field of CSV, in quotes where it would not be one without.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn launch(chosen: &Chosen) -> String {
    let run = &chosen.realised;
    let pair = run.pair;
    format!("{},{},{},{},{}", pair.algorithm, pair.protocol, run.channels, run.threads, run.chunk_bytes)
}

/// The table and the verdicts.
fn markdown(report: &Report) -> String {
    let mut text = format!("{}.\n\n", heading(report));
    if let Some(warning) = too_few(report) {
        text += &format!("{warning}.\n\n");
    }
    text += &format!("| {} |\n|", TITLES.join(" | "));
    text += &TITLES.map(|_| "---|").concat();
    text.push('\n');
    for row in rows(report) {
        // A bar in a name would begin another column.
        text += &format!("| {} |\n", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text.push('\n');
    for tuner in &report.tuners {
        text += &format!("- {}\n", verdict(report, tuner));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_is_still_one_field() {
        assert_eq!(quoted("nccl"), "nccl");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\""), "\"say \"\"x\"\"\"");
    }
}
