//! `wan --html`: the result as one page that needs no network, no script and no other file.

use dynamiccl_env::wan::Mode;

use super::grid::{CHUNKS, Cell, DELAYS, Document as Grid};
use super::modes::{Document as Modes, Figures};
use super::{compare, plan::About};
use crate::page;
use crate::svg::{Axis, Svg, escape};

const PLOT: [f64; 2] = [300.0, 180.0];
const MARGIN: [f64; 2] = [48.0, 26.0];
const BAR: f64 = 34.0;

/// The four modes.
pub fn of_modes(document: &Modes, seed: u64) -> String {
    let bars = document.modes.iter().map(|m| (m.mode.name(), m.mean_ms, None));
    let plot = bars_of(&bars.collect::<Vec<_>>(), "mean time of each mode");
    page(&document.about, seed, &document.to_string(), &plot)
}

/// The grid: time over the chunk for every delay, time over the delay for every chunk.
pub fn of_grid(document: &Grid, seed: u64) -> String {
    let mut plots = format!("<p>{}</p>\n<h2>By chunk</h2>\n", key());
    for delay in DELAYS {
        let cells: Vec<&Cell> = document.cells.iter().filter(|cell| cell.delay_ms == delay).collect();
        plots += &curves(&cells, &CHUNKS.map(|mb| format!("{mb} MB")), &format!("{delay} ms"));
    }
    plots += "<h2>By delay</h2>\n";
    for chunk in CHUNKS {
        let cells: Vec<&Cell> = document.cells.iter().filter(|cell| cell.chunk_mb == chunk).collect();
        plots += &curves(&cells, &DELAYS.map(|ms| format!("{ms} ms")), &format!("{chunk} MB"));
    }
    page(&document.about, seed, &document.to_string(), &plots)
}

/// Everybody who decides.
pub fn of_comparison(document: &compare::Document, seed: u64) -> String {
    let rows = document.rows();
    let bars: Vec<_> =
        rows.iter().map(|(name, figures, _)| (*name, figures.mean_ms, figures.std_ms)).collect();
    page(&document.about, seed, &document.to_string(), &bars_of(&bars, "mean time of each, costs included"))
}

fn page(about: &About, seed: u64, text: &str, plots: &str) -> String {
    let gpus: usize = about.datacentres.iter().map(|one| one.gpus).sum();
    let version = env!("CARGO_PKG_VERSION");
    let body = format!(
        "<h1>{} of {gpus} GPUs across datacentres</h1>\n\
         <p class=\"soft\">Simulated: no number here was measured. Seed {seed}, dynamiccl {version}.</p>\n\
         <div class=\"wide\">{plots}</div>\n<pre class=\"wide\">{}</pre>\n",
        about.collective,
        escape(text)
    );
    page::page("DynamICCL across datacentres", &body)
}

/// A bar for each, with its spread where there is one.
fn bars_of(bars: &[(&str, f64, Option<f64>)], name: &str) -> String {
    let ([_, height], [left, below]) = (PLOT, MARGIN);
    let width = 2.4 * BAR * bars.len() as f64;
    let mut svg = Svg::new(left + width, height + 2.0 * below);
    let highest = bars.iter().map(|(_, ms, spread)| ms + spread.unwrap_or(0.0)).fold(1.0, f64::max);
    let y = Axis { range: [0.0, highest], place: [below + height, below] };
    ticks(&mut svg, &y, [left, left + width]);
    for (at, (name, ms, spread)) in bars.iter().enumerate() {
        let corner = left + 2.4 * BAR * (at as f64 + 0.3);
        let (top, title) = (y.at(*ms), format!("{name}: {ms:.2} ms"));
        svg.rectangle([corner, top], [BAR, y.place[0] - top], &format!("bar t{at}"), &title);
        let above = y.at(ms + spread.unwrap_or(0.0)) - 5.0;
        svg.text([corner + BAR / 2.0, above], "tick middle", &format!("{ms:.1}"));
        svg.text([corner + BAR / 2.0, below + height + 15.0], "label middle", name);
        if let Some(spread) = spread {
            let middle = corner + BAR / 2.0;
            svg.line([middle, y.at(ms - spread)], [middle, y.at(ms + spread)], "hold");
        }
    }
    svg.finish(name)
}

/// The four modes over a row of cells.
fn curves(cells: &[&Cell], names: &[String], title: &str) -> String {
    let ([width, height], [left, below]) = (PLOT, MARGIN);
    let mut svg = Svg::new(left + width + 30.0, height + 2.0 * below);
    let highest = cells.iter().flat_map(|cell| &cell.modes).map(|m| m.mean_ms).fold(1.0, f64::max);
    let y = Axis { range: [0.0, highest], place: [below + height, below] };
    let x = Axis { range: [0.0, (cells.len().max(2) - 1) as f64], place: [left, left + width] };
    ticks(&mut svg, &y, x.place);
    svg.text([left, below - 10.0], "label", title);
    for (at, name) in names.iter().enumerate() {
        svg.text([x.at(at as f64), below + height + 15.0], "tick middle", name);
    }
    for (number, mode) in Mode::ALL.into_iter().enumerate() {
        let of = |cell: &Cell| -> Figures { cell.modes[number] };
        let places: Vec<[f64; 2]> =
            cells.iter().enumerate().map(|(at, cell)| [x.at(at as f64), y.at(of(cell).mean_ms)]).collect();
        svg.curve(&places, &format!("curve t{number}"));
        for (cell, place) in cells.iter().zip(&places) {
            let Figures { mean_ms, gain, .. } = of(cell);
            let title = format!("{}: {mean_ms:.2} ms, {gain:.1} %", mode.name());
            svg.dot(*place, &format!("dot t{number}"), &title);
        }
    }
    svg.finish(&format!("mean time of each mode, {title}"))
}

/// Lines across at round numbers.
fn ticks(svg: &mut Svg, y: &Axis, across: [f64; 2]) {
    let highest = y.range[1];
    let power = 10f64.powf(highest.log10().floor());
    let step = if highest / power < 2.5 { power / 2.0 } else { power };
    for at in 0..=(highest / step) as u32 {
        let ms = f64::from(at) * step;
        svg.line([across[0], y.at(ms)], [across[1], y.at(ms)], "grid");
        svg.text([across[0] - 4.0, y.at(ms) + 3.0], "tick end", &format!("{ms} ms"));
    }
}

fn key() -> String {
    let patch = |(number, mode): (usize, Mode)| {
        let mut patch = Svg::new(14.0, 10.0);
        patch.rectangle([0.0, 0.0], [14.0, 10.0], &format!("bar t{number}"), mode.name());
        format!("<span class=\"key\">{}{}</span>", patch.finish(mode.name()), mode.name())
    };
    Mode::ALL.into_iter().enumerate().map(patch).collect()
}
