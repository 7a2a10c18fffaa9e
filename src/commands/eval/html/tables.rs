//! The figures as a table of the page.

use dynamiccl_env::evaluate::{Figures, MARKS, Place, Report, TunerReport};
use dynamiccl_spec::Bytes;

use crate::svg::escape;
use crate::words::percent;

/// Every tuner at every tier; which cell is the worst shows under the mouse.
pub fn summary(report: &Report) -> String {
    let since = MARKS.map(|mark| format!("<th>since start, {mark} calls</th>")).concat();
    let mut rows = String::new();
    for (place, figures) in groups(report) {
        let there = report.tuners.iter().zip(figures).filter_map(|(tuner, f)| Some((&tuner.name, f?)));
        for (at, (name, figures)) in there.enumerate() {
            let (place, class) = if at == 0 { (place.as_str(), " class=\"first\"") } else { ("", "") };
            rows += &format!("<tr{class}><td>{place}</td>{}</tr>\n", cells(name, figures));
        }
    }
    format!(
        "<table>\n<tr><th>where</th><th class=\"word\">tuner</th><th>cells</th><th>speed-up</th><th>regret</th>\
         <th>hold</th><th>worst cell</th><th>left to NCCL</th><th>knobs</th>{since}</tr>\n{rows}</table>\n"
    )
}

fn cells(name: &str, figures: &Figures) -> String {
    let spread = figures.speedup_std.map_or(String::new(), |std| format!(" ± {std:.3}"));
    let Place { cluster, nodes, collective, bytes } = &figures.worst_at;
    let worst = format!("{collective} {} on {} × {}", Bytes(*bytes), nodes, escape(cluster));
    let since = MARKS.map(|mark| {
        let ratio = figures.cumulative.get(&mark).map_or(String::new(), |ratio| format!("{ratio:.3}"));
        format!("<td>{ratio}</td>")
    });
    format!(
        "<td class=\"word\">{}</td><td>{}</td><td>{:.3}{spread}</td><td>{} %</td><td>{} %</td>\
         <td title=\"{worst}\">{:.3}</td><td>{} %</td><td>{}</td>{}",
        escape(name),
        figures.cells,
        figures.speedup,
        percent(figures.regret),
        percent(figures.regret_hold),
        figures.worst_cell,
        percent(figures.fallback_share),
        figures.distinct_knobs,
        since.concat()
    )
}

/// The figures of every tuner, for each tier, all of them together, and what is held out.
pub fn groups(report: &Report) -> Vec<(String, Vec<Option<&Figures>>)> {
    let mut tiers: Vec<u8> = report.tuners.iter().flat_map(|t| t.tiers.iter().map(|t| t.tier)).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let of_tier = |tier: u8| {
        let found = |tuner: &'_ TunerReport| tuner.tiers.iter().position(|report| report.tier == tier);
        let figures = report.tuners.iter().map(|tuner| found(tuner).map(|at| &tuner.tiers[at].figures));
        (format!("tier {tier}"), figures.collect())
    };
    let mut groups: Vec<(String, Vec<Option<&Figures>>)> = tiers.into_iter().map(of_tier).collect();
    groups.push(("all tiers".to_owned(), report.tuners.iter().map(|t| t.overall.as_ref()).collect()));
    groups.push(("held out".to_owned(), report.tuners.iter().map(|t| t.held_out.as_ref()).collect()));
    groups.retain(|(_, figures)| figures.iter().any(Option::is_some));
    groups
}
