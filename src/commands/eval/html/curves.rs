//! Speed-up over NCCL by size: a row of small plots for each tier, one plot for each collective.

use std::collections::BTreeSet;

use dynamiccl_env::evaluate::{Point, Report, TunerReport};
use dynamiccl_spec::{Bytes, Collective};

use super::colours::tuner_class;
use crate::svg::{Axis, Svg};

const PLOT: [f64; 2] = [212.0, 140.0];
const MARGIN: [f64; 2] = [34.0, 22.0];
const GAP: f64 = 22.0;
/// Lowest and highest speed-up that is drawn; what is beyond lies on the edge.
pub const LIMITS: [f64; 2] = [0.8, 4.0];
/// Where lines are drawn across, if they are in sight.
const TICKS: [f64; 9] = [0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0];

/// The points of a tuner that are drawn.
type Of = fn(&TunerReport) -> &[Point];

/// One row of plots for each tier, then one for each tier of the clusters that are held out; with their titles.
pub fn rows(report: &Report) -> Vec<(String, String)> {
    let groups: [(&str, Of); 2] =
        [("Tier", |tuner| &tuner.curves), ("Held out, tier", |tuner| &tuner.held_out_curves)];
    let mut rows = Vec::new();
    for (name, of) in groups {
        let tiers: BTreeSet<u8> = report.tuners.iter().flat_map(|t| of(t).iter().map(|p| p.tier)).collect();
        rows.extend(tiers.into_iter().map(|tier| (format!("{name} {tier}"), row(report, of, tier))));
    }
    rows
}

fn row(report: &Report, of: Of, tier: u8) -> String {
    let points = || report.tuners.iter().flat_map(of).filter(|point| point.tier == tier);
    let shown: Vec<Collective> =
        Collective::TUNED.into_iter().filter(|&c| points().any(|point| point.collective == c)).collect();
    let [width, height] = PLOT;
    let [left, below] = MARGIN;
    let across = left + shown.len() as f64 * (width + GAP);
    let mut svg = Svg::new(across, height + 2.0 * below);
    let y = Axis { range: speeds(points()), place: [below + height, below] };
    let x = sizes(points());
    for (at, &collective) in shown.iter().enumerate() {
        let start = left + at as f64 * (width + GAP);
        let x = Axis { range: x, place: [start, start + width] };
        frame(&mut svg, collective, &x, &y, at == 0);
        for (number, tuner) in report.tuners.iter().enumerate() {
            let mine = of(tuner).iter().filter(|p| (p.tier, p.collective) == (tier, collective));
            draw(&mut svg, &tuner.name, &tuner_class(tuner.kind, number), mine, &x, &y);
        }
    }
    svg.finish(&format!("speed-up over NCCL by size, tier {tier}"))
}

fn frame(svg: &mut Svg, collective: Collective, x: &Axis, y: &Axis, first: bool) {
    let ([left, right], [bottom, top]) = (x.place, y.place);
    svg.text([left, top - 6.0], "label", collective.name());
    for tick in TICKS.into_iter().filter(|tick| (y.range[0]..=y.range[1]).contains(&tick.log2())) {
        let height = y.at(tick.log2());
        svg.line([left, height], [right, height], if tick == 1.0 { "one" } else { "grid" });
        if first {
            svg.text([left - 4.0, height + 3.0], "tick end", &tick.to_string());
        }
    }
    let [least, most] = x.range.map(|octave| octave as u32);
    for octave in [least, (least + most) / 2, most] {
        let at = x.at(f64::from(octave));
        svg.text([at, bottom + 13.0], "tick middle", &Bytes(1 << octave).to_string());
    }
}

fn draw<'a>(
    svg: &mut Svg,
    name: &str,
    class: &str,
    points: impl Iterator<Item = &'a Point>,
    x: &Axis,
    y: &Axis,
) {
    let place = |p: &Point| [x.at((p.bytes as f64).log2()), y.at(p.speedup.log2())];
    let points: Vec<&Point> = points.collect();
    svg.curve(&points.iter().map(|p| place(p)).collect::<Vec<_>>(), &format!("curve {class}"));
    for p in points {
        let (size, regret) = (Bytes(p.bytes), 100.0 * p.regret);
        let title = format!("{name} {size}: {:.3}×, regret {regret:.1} %", p.speedup);
        let inside = (y.range[0]..=y.range[1]).contains(&p.speedup.log2());
        let dot = if inside { "dot" } else { "beyond" };
        svg.dot(place(p), &format!("{dot} {class}"), &title);
    }
}

/// The range of speed-ups as powers of two, within limits.
fn speeds<'a>(points: impl Iterator<Item = &'a Point>) -> [f64; 2] {
    let start = [0.9f64, 1.1];
    let [low, high] = points.fold(start, |[low, high], p| [low.min(p.speedup), high.max(p.speedup)]);
    [low.max(LIMITS[0]).log2() - 0.05, high.min(LIMITS[1]).log2() + 0.05]
}

/// The range of sizes as powers of two.
fn sizes<'a>(points: impl Iterator<Item = &'a Point>) -> [f64; 2] {
    let ends = |[low, high]: [u64; 2], p: &Point| [low.min(p.bytes), high.max(p.bytes)];
    let [low, high] = points.fold([u64::MAX, 1], ends);
    [(low.min(high).max(1) as f64).log2().floor(), ((high.max(2)) as f64).log2().ceil()]
}
