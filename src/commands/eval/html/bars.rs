//! Regret by tier: a bar with feedback and a mark without, for each tuner.

use dynamiccl_env::evaluate::{Figures, Report};

use super::colours::tuner_class;
use super::tables::groups;
use crate::svg::{Axis, Svg};
use crate::words::percent;

const BAR: f64 = 16.0;
const HEIGHT: f64 = 180.0;
const MARGIN: [f64; 2] = [40.0, 26.0];
/// Regret above which a bar ends at the edge, with its number above it.
pub const MOST: f64 = 0.3;

/// All tiers side by side.
pub fn plot(report: &Report) -> String {
    let groups = groups(report);
    let group = (report.tuners.len() as f64 + 1.0) * BAR;
    let [left, below] = MARGIN;
    let width = left + groups.len() as f64 * group;
    let mut svg = Svg::new(width, HEIGHT + 2.0 * below);
    let all = groups.iter().flat_map(|(_, figures)| figures.iter().flatten());
    let highest = all.map(|f| f.regret.max(f.regret_hold)).fold(0.05, f64::max).min(MOST);
    let y = Axis { range: [0.0, highest], place: [below + HEIGHT, below] };
    grid(&mut svg, &y, [left, width]);
    for (at, (name, figures)) in groups.iter().enumerate() {
        let start = left + at as f64 * group;
        svg.text([start + group / 2.0, below + HEIGHT + 16.0], "label middle", name);
        for (number, figures) in figures.iter().enumerate() {
            let Some(figures) = figures else { continue };
            let tuner = &report.tuners[number];
            let corner = start + BAR * (number as f64 + 0.5);
            bar(&mut svg, &y, corner, figures, &tuner.name, &tuner_class(tuner.kind, number));
        }
    }
    svg.finish("regret by tier")
}

fn grid(svg: &mut Svg, y: &Axis, across: [f64; 2]) {
    for percent in [0, 5, 10, 15, 20, 25, 30] {
        let share = f64::from(percent) / 100.0;
        if share <= y.range[1] {
            let height = y.at(share);
            svg.line([across[0], height], [across[1], height], "grid");
            svg.text([across[0] - 4.0, height + 3.0], "tick end", &format!("{percent} %"));
        }
    }
}

fn bar(svg: &mut Svg, y: &Axis, left: f64, figures: &Figures, tuner: &str, class: &str) {
    let title = format!(
        "{tuner}: regret {} % with feedback, {} % without",
        percent(figures.regret),
        percent(figures.regret_hold)
    );
    let (top, bottom) = (y.at(figures.regret), y.place[0]);
    svg.rectangle([left, top], [BAR - 3.0, bottom - top], &format!("bar {class}"), &title);
    if figures.regret > y.range[1] {
        let number = format!("{:.0}", 100.0 * figures.regret);
        svg.text([left + (BAR - 3.0) / 2.0, top - 4.0], "clipped middle", &number);
    }
    let hold = y.at(figures.regret_hold);
    svg.line([left - 1.0, hold], [left + BAR - 2.0, hold], "hold");
}
