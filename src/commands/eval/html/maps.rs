//! Decision maps: what runs for each machine and size, NCCL's choice beside the oracle's and a tuner's.

use dynamiccl_env::evaluate::{CellReport, Chosen, Kind, Report};
use dynamiccl_spec::{Bytes, Collective};

use super::colours::pair_class;
use crate::svg::Svg;

const CELL: [f64; 2] = [26.0, 13.0];
const NAMES: f64 = 150.0;
const TOP: f64 = 34.0;

/// Somebody who chooses.
#[derive(Debug, Clone, Copy)]
enum Who {
    Nccl,
    Oracle,
    Tuner(usize),
}

impl Who {
    fn chose(self, cell: &CellReport) -> Option<&Chosen> {
        match self {
            Who::Nccl => Some(&cell.own),
            Who::Oracle => Some(&cell.best),
            Who::Tuner(number) => cell.tuners.get(number)?.as_ref().map(|figures| &figures.chosen),
        }
    }
}

/// The maps of each collective.
pub fn by_collective(report: &Report) -> Vec<(Collective, String)> {
    let drawn = Collective::TUNED.into_iter().map(|collective| (collective, maps(report, collective)));
    drawn.filter(|(_, maps)| !maps.is_empty()).collect()
}

/// NCCL, the oracle, and every tuner that is neither, side by side; nothing where there is no cell.
fn maps(report: &Report, collective: Collective) -> String {
    let cells: Vec<&CellReport> = report.cells.iter().filter(|c| c.place.collective == collective).collect();
    if cells.is_empty() {
        return String::new();
    }
    let (machines, sizes) = (machines(&cells), sizes(&cells));
    let choosers = choosers(report);
    let map = sizes.len() as f64 * CELL[0] + CELL[0];
    let (width, height) = (NAMES + choosers.len() as f64 * map, TOP + machines.len() as f64 * CELL[1] + 6.0);
    let mut svg = Svg::new(width, height);
    for (row, (tier, cluster, nodes)) in machines.iter().enumerate() {
        let y = TOP + (row as f64 + 0.8) * CELL[1];
        svg.text([NAMES - 6.0, y], "tick end", &format!("{cluster} ×{nodes}  t{tier}"));
    }
    for (number, &(name, who)) in choosers.iter().enumerate() {
        let left = NAMES + number as f64 * map;
        heading(&mut svg, left, name, &sizes);
        for cell in &cells {
            let machine = (cell.tier, cell.place.cluster.as_str(), cell.place.nodes);
            let row = machines.binary_search(&machine).unwrap_or_default() as f64;
            let column = sizes.binary_search(&cell.place.bytes).unwrap_or_default() as f64;
            let corner = [left + column * CELL[0], TOP + row * CELL[1]];
            if let Some(chosen) = who.chose(cell) {
                draw(&mut svg, corner, cell, chosen, name);
            }
        }
    }
    svg.finish(&format!("decisions for {collective}"))
}

/// NCCL, the oracle, and the tuners whose choice is neither theirs nor a throw of dice.
fn choosers(report: &Report) -> Vec<(&str, Who)> {
    let others = report.tuners.iter().enumerate();
    let others = others.filter(|(_, tuner)| !matches!(tuner.kind, Kind::Nccl | Kind::Oracle | Kind::Random));
    let others = others.map(|(at, tuner)| (tuner.name.as_str(), Who::Tuner(at)));
    [("nccl", Who::Nccl), ("oracle", Who::Oracle)].into_iter().chain(others).collect()
}

fn machines<'a>(cells: &[&'a CellReport]) -> Vec<(u8, &'a str, u32)> {
    let mut machines: Vec<_> =
        cells.iter().map(|cell| (cell.tier, cell.place.cluster.as_str(), cell.place.nodes)).collect();
    machines.sort_unstable();
    machines.dedup();
    machines
}

fn sizes(cells: &[&CellReport]) -> Vec<u64> {
    let mut sizes: Vec<_> = cells.iter().map(|cell| cell.place.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn heading(svg: &mut Svg, left: f64, name: &str, sizes: &[u64]) {
    svg.text([left, 12.0], "label", name);
    for (column, &bytes) in sizes.iter().enumerate() {
        let middle = left + (column as f64 + 0.5) * CELL[0];
        svg.text([middle, TOP - 6.0], "tick middle", &Bytes(bytes).to_string());
    }
}

fn draw(svg: &mut Svg, [x, y]: [f64; 2], cell: &CellReport, chosen: &Chosen, name: &str) {
    let Chosen { knobs, realised, share } = chosen;
    let (place, size) = (&cell.place, Bytes(cell.place.bytes));
    let title = format!(
        "{name}: {} {size} on {} ×{}: {} with {} channels, chunk {} B ({:.0} % of calls)",
        place.collective,
        place.cluster,
        place.nodes,
        realised.pair,
        realised.channels,
        realised.chunk_bytes,
        100.0 * share
    );
    let class = format!("cell {}", pair_class(knobs.path, realised.pair));
    svg.rectangle([x, y], [CELL[0] - 1.0, CELL[1] - 1.0], &class, &title);
    svg.text([x + CELL[0] / 2.0 - 0.5, y + CELL[1] - 3.5], "count middle", &realised.channels.to_string());
}
