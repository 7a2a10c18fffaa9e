//! `eval --html`: the whole result as one page that needs no network, no script and no other file.

mod bars;
mod colours;
mod curves;
mod maps;
mod tables;

use dynamiccl_env::evaluate::Report;
use dynamiccl_spec::{Algorithm, Pair, Path, Protocol};

use super::text::{too_few, verdict};
use crate::page;
use crate::svg::{Svg, escape};

/// What stands under the plots.
const TRIALS: &str = "<p class=\"soft\">Trials that a tuner makes beside the job's calls are in the \
                      \u{201c}since start\u{201d} columns only, not in these plots.</p>\n";

/// The page of a result.
pub fn page(report: &Report, seed: u64) -> String {
    let sections =
        [header(report, seed), summary(report), speeds(report), regrets(report), decisions(report)];
    page::page("DynamICCL evaluation", &sections.concat())
}

fn header(report: &Report, seed: u64) -> String {
    let Report { workload, seeds, worlds, .. } = report;
    let (how, each) = if report.simulated {
        ("Simulated: no number here was measured.", "worlds each")
    } else {
        ("Measured: every time is one that a sweep has recorded.", "jobs on each")
    };
    let version = env!("CARGO_PKG_VERSION");
    let cells = report.tuners.first().and_then(|t| t.verdict()).map_or(0, |figures| figures.cells);
    let warning = too_few(report).map_or_else(String::new, |warning| format!("<p>{warning}.</p>\n"));
    format!(
        "<h1>Tuners compared</h1>\n<p class=\"soft\">{how} Workload {}, \
         {cells} cells, {seeds} seeds of {worlds} {each}, seed {seed}, dynamiccl {version}.</p>\n{warning}",
        escape(workload)
    )
}

fn summary(report: &Report) -> String {
    let verdicts: String =
        report.tuners.iter().map(|tuner| format!("<li>{}</li>\n", escape(&verdict(report, tuner)))).collect();
    format!(
        "<h2>Summary</h2>\n<ul>\n{verdicts}</ul>\n<p>Speed-up is NCCL's own time divided by the tuner's, regret how much longer it \
         takes than the best setting; both are geometric means over cells, after the first 50 calls of a job. \
         Hold is regret without feedback from the job's calls. Knobs are how many different ones ran. Since \
         start is total time against NCCL's over the first calls of a job, with everything that was tried on \
         the way.</p>\n<div class=\"wide\">{}</div>\n",
        tables::summary(report)
    )
}

fn speeds(report: &Report) -> String {
    let [low, high] = curves::LIMITS;
    let mut text = format!(
        "<h2>Speed-up over NCCL by size</h2>\n<p>Above 1 is faster than NCCL's own choice. Curves are cut off at \
         {low} and {high}: a hollow dot on the edge lies beyond it, and says its number under the mouse.</p>\n\
         <p>{}</p>\n",
        tuner_key(report)
    );
    for (title, plots) in curves::rows(report) {
        text += &format!("<h3>{title}</h3>\n<div class=\"wide\">{plots}</div>\n");
    }
    text + TRIALS
}

fn regrets(report: &Report) -> String {
    format!(
        "<h2>Regret by tier</h2>\n<p>Bars are with feedback, the line across is without. Both are cut off at \
         {:.0} %: the number above a bar that is cut off is its regret in per cent.</p>\n<p>{}</p>\n\
         <div class=\"wide\">{}</div>\n{TRIALS}",
        100.0 * bars::MOST,
        tuner_key(report),
        bars::plot(report)
    )
}

fn decisions(report: &Report) -> String {
    let mut text = format!(
        "<h2>Decisions</h2>\n<p>What runs most often for each machine (down, by tier) and size (across). The \
         colour is the algorithm and protocol, the number the channels that run.</p>\n<p>{}</p>\n",
        pair_key()
    );
    let maps = maps::by_collective(report);
    let last = maps.len().saturating_sub(1);
    for (at, (collective, map)) in maps.into_iter().enumerate() {
        let open = if at == last { " open=\"open\"" } else { "" };
        text += &format!(
            "<details{open}><summary>{collective}</summary>\n<div class=\"wide\">{map}</div></details>\n"
        );
    }
    text
}

fn tuner_key(report: &Report) -> String {
    let names = report.tuners.iter().enumerate();
    names
        .map(|(at, tuner)| key(&format!("bar {}", colours::tuner_class(tuner.kind, at)), &tuner.name))
        .collect()
}

fn pair_key() -> String {
    let mut text = String::new();
    for &algorithm in Algorithm::ALL {
        let both = matches!(algorithm, Algorithm::Tree | Algorithm::Ring);
        for &protocol in Protocol::ALL.iter().filter(|&&p| both || p == Protocol::Simple) {
            let pair = Pair::new(algorithm, protocol);
            text += &key(&format!("cell {}", colours::pair_class(Path::Nccl, pair)), &pair.to_string());
        }
    }
    text
}

fn key(class: &str, name: &str) -> String {
    let mut patch = Svg::new(14.0, 10.0);
    patch.rectangle([0.0, 0.0], [14.0, 10.0], class, name);
    format!("<span class=\"key\">{}{}</span>", patch.finish(name), escape(name))
}
