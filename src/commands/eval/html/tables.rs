//! The figures as a table of the page.

use dynamiccl_env::evaluate::{Figures, MARKS, Report};
use dynamiccl_spec::Bytes;

use super::svg::escape;

/// Every tuner at every tier.
pub fn summary(report: &Report) -> String {
    let since = MARKS.map(|mark| format!("<th>{mark} calls</th>")).concat();
    let mut rows = String::new();
    for tuner in &report.tuners {
        let tiers = tuner.tiers.iter().map(|tier| (format!("tier {}", tier.tier), &tier.figures));
        let whole = tuner.overall.iter().map(|figures| ("all tiers".to_owned(), figures));
        let held_out = tuner.held_out.iter().map(|figures| ("held out".to_owned(), figures));
        for (at, (place, figures)) in tiers.chain(whole).chain(held_out).enumerate() {
            let name = if at == 0 { escape(&tuner.name) } else { String::new() };
            rows += &row(&name, &place, figures);
        }
    }
    format!(
        "<table>\n<tr><th>tuner</th><th class=\"word\">where</th><th>cells</th><th>speed-up</th><th>regret</th>\
         <th>hold</th><th>worst cell</th><th class=\"word\">which is</th><th>left to NCCL</th>{since}</tr>\n\
         {rows}</table>\n"
    )
}

fn row(name: &str, place: &str, figures: &Figures) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let spread = figures.speedup_std.map_or(String::new(), |std| format!(" ± {std:.3}"));
    let worst = &figures.worst_at;
    let since = MARKS.map(|mark| {
        let ratio = figures.cumulative.get(&mark).map_or(String::new(), |ratio| format!("{ratio:.3}"));
        format!("<td>{ratio}</td>")
    });
    format!(
        "<tr><td>{name}</td><td class=\"word\">{place}</td><td>{}</td><td>{:.3}{spread}</td><td>{}</td><td>{}</td>\
         <td>{:.3}</td><td class=\"word\">{} {} on {} ×{}</td><td>{}</td>{}</tr>\n",
        figures.cells,
        figures.speedup,
        percent(figures.regret),
        percent(figures.regret_hold),
        figures.worst_cell,
        worst.collective,
        Bytes(worst.bytes),
        escape(&worst.cluster),
        worst.nodes,
        percent(figures.fallback_share),
        since.concat()
    )
}
