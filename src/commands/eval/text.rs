//! The result of `eval` as text: one table over all tiers, and a verdict on every tuner.

use std::collections::BTreeSet;
use std::fmt;

use dynamiccl_env::evaluate::{Figures, Kind, MARKS, Paths, Place, Report, TunerReport};
use dynamiccl_spec::Bytes;

use super::report::Document;
use super::same_call;
use crate::table::{Column, Table};
use crate::words::percent;

/// Titles of the columns, of all tables.
pub const TITLES: [&str; 14] = [
    "tier",
    "tuner",
    "cells",
    "speedup",
    "±",
    "regret",
    "hold",
    "worst",
    "left",
    "knobs",
    "50",
    "200",
    "1000",
    "worst cell",
];
/// Units below them.
const UNITS: [&str; 14] = ["", "", "", "(x)", "", "(%)", "(%)", "(x)", "(%)", "", "", "", "", ""];
/// What is printed where there is nothing.
const NOTHING: &str = "-";
/// Seeds that a result has at least.
const LEAST_SEEDS: u32 = 3;
/// Worlds that a result has at least, over all seeds.
const LEAST_WORLDS: u32 = 20;

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        writeln!(f, "# {}", heading(report))?;
        if let Some(version) = self.nccl_version {
            writeln!(f, "# NCCL {version}")?;
        }
        writeln!(
            f,
            "# speedup: NCCL's own true time / the tuner's; regret: the tuner's / the oracle's - 1, with"
        )?;
        writeln!(
            f,
            "# feedback after 50 calls, and held without; left: calls left to NCCL; 50, 200, 1000: time"
        )?;
        writeln!(f, "# / NCCL's since a job began, with the trials beside it, which are in no other column")?;
        if let Some(warning) = too_few(report) {
            writeln!(f, "# {warning}")?;
        }
        let columns: [Column; TITLES.len()] = std::array::from_fn(|at| {
            let words = at == 1 || at + 1 == TITLES.len();
            if words { Column::left(TITLES[at]) } else { Column::right(TITLES[at]).unit(UNITS[at]) }
        });
        let mut table = Table::new(columns);
        rows(report).into_iter().for_each(|row| table.row(row));
        write!(f, "#\n{table}")?;
        if let Some(same_call) = &self.same_call {
            write!(f, "{}", same_call::table(same_call))?;
        }
        for (at, tuner) in report.tuners.iter().enumerate() {
            let margin = if at == 0 { "Summary" } else { "" };
            writeln!(f, "{margin:7}  {}", verdict(report, tuner))?;
        }
        for line in report.tuners.iter().filter_map(paths) {
            writeln!(f, "         {line}")?;
        }
        if let Some(same_call) = &self.same_call {
            writeln!(f, "         {}", same_call::verdict(same_call))?;
        }
        if let Some(verdict) = &self.verdict {
            writeln!(f, "Verdict  {verdict}")?;
        }
        Ok(())
    }
}

/// What was simulated, or measured.
pub fn heading(report: &Report) -> String {
    let Report { workload, seeds, worlds, episodes, .. } = report;
    let (how, each) = (how(report), if report.simulated { "worlds" } else { "jobs on each" });
    format!("{how}: {workload}, {seeds} seeds of {worlds} {each}, {episodes} episodes for each tuner")
}

/// Where the times are from.
fn how(report: &Report) -> &'static str {
    if report.simulated { "simulated" } else { "measured" }
}

/// What is said where there are too few worlds for a result.
pub fn too_few(report: &Report) -> Option<String> {
    let (seeds, worlds) = (report.seeds, report.seeds * report.worlds);
    // Sweeps have one world.
    let simulated = report.simulated;
    (simulated && (seeds < LEAST_SEEDS || worlds < LEAST_WORLDS)).then(|| {
        format!(
            "a look, not a result: {seeds} seeds and {worlds} worlds in all, where a result has at least \
             {LEAST_SEEDS} and {LEAST_WORLDS}"
        )
    })
}

/// One row per tier and tuner; then what is held out, then all tiers together.
pub fn rows(report: &Report) -> Vec<[String; TITLES.len()]> {
    let mut rows = Vec::new();
    let tiers: BTreeSet<u8> = report.tuners.iter().flat_map(|t| t.tiers.iter().map(|t| t.tier)).collect();
    for tier in tiers {
        let of_tier = |tuner: &TunerReport| {
            tuner.tiers.iter().find(|report| report.tier == tier).map(|report| report.figures.clone())
        };
        rows.extend(group(report, &tier.to_string(), of_tier));
    }
    rows.extend(group(report, "held-out", |tuner| tuner.held_out.clone()));
    rows.extend(group(report, "all", |tuner| tuner.overall.clone()));
    rows
}

fn group(
    report: &Report,
    name: &str,
    of: impl Fn(&TunerReport) -> Option<Figures>,
) -> Vec<[String; TITLES.len()]> {
    let row = |tuner: &TunerReport| Some(row(name, &tuner.name, &of(tuner)?));
    report.tuners.iter().filter_map(row).collect()
}

fn row(group: &str, tuner: &str, figures: &Figures) -> [String; TITLES.len()] {
    let [first, second, third] = MARKS.map(|mark| {
        figures.cumulative.get(&mark).map_or_else(|| NOTHING.to_owned(), |ratio| format!("{ratio:.3}"))
    });
    [
        group.to_owned(),
        tuner.to_owned(),
        figures.cells.to_string(),
        format!("{:.3}", figures.speedup),
        figures.speedup_std.map_or_else(|| NOTHING.to_owned(), |std| format!("{std:.3}")),
        percent(figures.regret),
        percent(figures.regret_hold),
        format!("{:.3}", figures.worst_cell),
        percent(figures.fallback_share),
        figures.distinct_knobs.to_string(),
        first,
        second,
        third,
        place(&figures.worst_at),
    ]
}

/// Where a cell is, as people say it.
pub fn place(place: &Place) -> String {
    let Place { cluster, nodes, collective, bytes } = place;
    format!("{collective} {} on {nodes} x {cluster}", Bytes(*bytes))
}

/// How a tuner chose between NCCL and synthesised schedules; nothing where there are none, and of those that
/// know the truth.
fn paths(tuner: &TunerReport) -> Option<String> {
    let Paths { cells, agreement, unrunnable } = tuner.verdict()?.paths;
    let share = agreement.filter(|_| tuner.kind == Kind::Tuner)?;
    Some(format!(
        "{}: the oracle's path in {} % of {cells} cells with a schedule; wanted one where none runs {unrunnable} times",
        tuner.name,
        percent(share)
    ))
}

/// Numbers as people list them: `1, 2 and 4`.
fn listed(numbers: impl Iterator<Item = u8>) -> String {
    let words: Vec<String> = numbers.map(|number| number.to_string()).collect();
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}

/// One line on a tuner.
pub fn verdict(report: &Report, tuner: &TunerReport) -> String {
    let Some(figures) = tuner.verdict() else { return format!("{}: no call was judged", tuner.name) };
    let over = match (&tuner.overall, tuner.tiers.as_slice()) {
        (None, _) => "held-out clusters".to_owned(),
        (_, [only]) => format!("tier {}", only.tier),
        (_, tiers) => format!("tiers {}", listed(tiers.iter().map(|tier| tier.tier))),
    };
    let whole = figures.cumulative.last_key_value().map_or_else(String::new, |(calls, ratio)| {
        let jobs = figures.cumulative_episodes;
        let few = if jobs < LEAST_WORLDS as usize { format!(" ({jobs} such jobs)") } else { String::new() };
        format!("; a job of {calls} calls takes {ratio:.3} times NCCL's{few}")
    });
    format!(
        "{}: {:.3}× NCCL over {over} ({}), worst cell {:.3}× ({}){whole}",
        tuner.name,
        figures.speedup,
        how(report),
        figures.worst_cell,
        place(&figures.worst_at)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_listed_and_not_spanned() {
        assert_eq!(
            [&[4][..], &[1, 4], &[1, 2, 4]].map(|tiers| listed(tiers.iter().copied())),
            ["4", "1 and 4", "1, 2 and 4"]
        );
    }
}
