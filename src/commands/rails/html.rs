//! `rails --html`: the figures as one page that needs no network, no script and no other file.

use super::report::{Point, Report};
use crate::page;
use crate::svg::{Axis, Svg, escape};

const PLOT: [f64; 2] = [620.0, 260.0];
const MARGIN: [f64; 2] = [44.0, 30.0];
const BAR: f64 = 46.0;
/// A curve: its name, the class that colours it, and where it goes through.
type Curve = (&'static str, &'static str, fn(&Point) -> f64);
const CURVES: [Curve; 4] = [
    ("on demand", "t4", |point| point.on_demand),
    ("provisioned", "t1", |point| point.provisioned),
    ("static split", "t5", |point| point.static_split),
    ("greedy", "t2", |point| point.greedy),
];

/// The page of a result.
pub fn page(report: &Report, seed: u64) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let lines = [report.heading(), report.baseline(), report.windows()];
    let lines: String = lines.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
    let notes: String = report.notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
    let body = format!(
        "<h1>Photonic rails</h1>\n\
         <p class=\"soft\">Simulated: no number here was measured. Seed {seed}, dynamiccl {version}.</p>\n{lines}\
         <h2>Controllers</h2>\n{}\n{}<h2>Iteration time over the delay of the switches</h2>\n{}\n{}\
         <h2>Windows of the profiled iteration</h2>\n{}\n<h2>Remarks</h2>\n<ul>\n{notes}</ul>\n",
        table(report),
        bars(report),
        key(),
        curves(report),
        windows(report),
    );
    page::page("DynamICCL photonic rails", &body)
}

fn table(report: &Report) -> String {
    let mut rows = String::new();
    for judged in &report.controllers {
        let std = judged.increase_std.map_or_else(String::new, |std| format!(" ± {std:.2}"));
        rows += &format!(
            "<tr><td>{}</td><td>{:.3}</td><td>{:.2}{std}</td><td>{:.1}</td></tr>\n",
            escape(&judged.name),
            judged.iteration_s,
            judged.increase,
            judged.reconfigurations
        );
    }
    format!(
        "<table>\n<tr><th>controller</th><th>iteration, s</th><th>increase, %</th><th>changes per stage</th></tr>\n\
         {rows}</table>"
    )
}

/// The increase of each controller.
fn bars(report: &Report) -> String {
    let [left, below] = MARGIN;
    let count = report.controllers.len() as f64;
    let mut svg = Svg::new(left + 2.0 * BAR * count, 160.0 + 2.0 * below);
    let most = report.controllers.iter().map(|judged| judged.increase).fold(1.0, f64::max);
    let y = Axis { range: [0.0, most], place: [below + 160.0, below] };
    for (at, judged) in report.controllers.iter().enumerate() {
        let corner = [left + 2.0 * BAR * at as f64, y.at(judged.increase)];
        let size = [BAR, y.place[0] - corner[1]];
        let title = format!("{}: {:.2} %", judged.name, judged.increase);
        svg.rectangle(corner, size, &format!("bar t{}", at % 8), &title);
        let middle = corner[0] + BAR / 2.0;
        svg.text([middle, corner[1] - 4.0], "label middle", &format!("{:.2} %", judged.increase));
        svg.text([middle, y.place[0] + 14.0], "tick middle", &judged.name);
    }
    svg.finish("increase of the iteration time by controller")
}

fn key() -> String {
    let entry = |(name, class, _): &(&str, &str, fn(&Point) -> f64)| {
        let mut svg = Svg::new(14.0, 10.0);
        svg.rectangle([0.0, 0.0], [14.0, 10.0], &format!("bar {class}"), name);
        format!("<span class=\"key\">{} {name}</span>\n", svg.finish(name))
    };
    format!("<p>{}</p>", CURVES.iter().map(entry).collect::<String>())
}

/// The increase of simple controllers over the delay, both as powers of two.
fn curves(report: &Report) -> String {
    let ([width, height], [left, below]) = (PLOT, MARGIN);
    let mut svg = Svg::new(left + width + 10.0, height + 2.0 * below);
    let points = &report.curve[1..];
    let place = |number: f64| number.max(0.01).log2();
    let last = points.last().map_or(1.0, |point| point.delay_ms);
    let x = Axis { range: [0.0, place(last)], place: [left, left + width] };
    let most = points.iter().map(|point| point.on_demand).fold(1.0, f64::max);
    let y = Axis { range: [place(0.05), place(most)], place: [below + height, below] };
    for share in [0.1, 1.0, 10.0, 100.0] {
        if place(share) <= y.range[1] {
            svg.line([left, y.at(place(share))], [left + width, y.at(place(share))], "grid");
            svg.text([left - 4.0, y.at(place(share)) + 3.0], "tick end", &format!("{share} %"));
        }
    }
    for point in points {
        let at = [x.at(place(point.delay_ms)), below + height + 14.0];
        svg.text(at, "tick middle", &format!("{} ms", point.delay_ms));
    }
    for (name, class, of) in CURVES {
        let spot = |point: &Point| [x.at(place(point.delay_ms)), y.at(place(of(point)))];
        svg.curve(&points.iter().map(spot).collect::<Vec<_>>(), &format!("curve {class}"));
        for point in points {
            let title = format!("{name}, {} ms: {:.2} %", point.delay_ms, of(point));
            svg.dot(spot(point), &format!("dot {class}"), &title);
        }
    }
    svg.finish("increase of the iteration time over the delay")
}

/// How many windows are at most so long.
fn windows(report: &Report) -> String {
    let ([width, height], [left, below]) = (PLOT, MARGIN);
    let mut svg = Svg::new(left + width + 10.0, height + 2.0 * below);
    let mut sorted: Vec<f64> = report.windows_ms.iter().map(|ms| ms.max(0.1)).collect();
    sorted.sort_by(f64::total_cmp);
    let longest = sorted.last().copied().unwrap_or(1.0).max(1.0);
    let x = Axis { range: [0.1f64.log2(), longest.log2()], place: [left, left + width] };
    let y = Axis { range: [0.0, 1.0], place: [below + height, below] };
    for ms in [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0].into_iter().filter(|&ms| ms <= longest) {
        svg.line([x.at(f64::log2(ms)), below], [x.at(f64::log2(ms)), below + height], "grid");
        svg.text([x.at(f64::log2(ms)), below + height + 14.0], "tick middle", &format!("{ms} ms"));
    }
    let count = sorted.len().max(1) as f64;
    let spots: Vec<[f64; 2]> =
        sorted.iter().enumerate().map(|(at, ms)| [x.at(ms.log2()), y.at((at + 1) as f64 / count)]).collect();
    svg.curve(&spots, "curve t0");
    for (spot, ms) in spots.iter().zip(&sorted) {
        svg.dot(*spot, "dot t0", &format!("{ms:.1} ms"));
    }
    svg.finish("share of windows that are at most so long")
}
