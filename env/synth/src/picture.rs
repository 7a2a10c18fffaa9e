//! A schedule over links and time, as SVG: one row for each connection, one bar for each chunk on it.
//!
//! Bars are as wide as a transfer really took, so that a NIC that is shared shows as slow bars side by side.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::execute::Flow;
use crate::machine::Machine;
use crate::xml;

/// Most rows that are drawn.
const MOST_ROWS: usize = 240;
const LEFT: f64 = 90.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 40.0;
const ROW: f64 = 9.0;

/// The picture of flows; `title` says of what.
pub fn draw(machine: &Machine, flows: &[Flow], title: &str) -> String {
    // Connections between nodes first: they are what a schedule is made for.
    let mut rows: BTreeMap<(bool, u32, u32), Vec<&Flow>> = BTreeMap::new();
    for flow in flows {
        rows.entry((machine.together(flow.from, flow.to), flow.from, flow.to)).or_default().push(flow);
    }
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    let end = flows.iter().map(|flow| flow.end).fold(1e-9, f64::max);
    let height = TOP + ROW * rows.len().min(MOST_ROWS) as f64 + 40.0;
    let mut svg = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{:.0}" height="{height:.0}" font-family="sans-serif" font-size="8">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="8" y="16" font-size="12">{}</text>
<text x="8" y="30">one row per connection (rank → rank), between nodes first; colour: chunk{}</text>
"##,
        LEFT + WIDTH + 20.0,
        xml::text(title),
        if left_out > 0 { format!("; {left_out} rows left out") } else { String::new() },
    );
    for (((near, from, to), flows), row) in rows.iter().take(MOST_ROWS).zip(0..) {
        let y = TOP + ROW * f64::from(row);
        let weight = if *near { "normal" } else { "bold" };
        let _ =
            writeln!(svg, r#"<text x="8" y="{:.1}" font-weight="{weight}">{from} → {to}</text>"#, y + 7.0);
        for flow in flows {
            bar(&mut svg, flow, y, end);
        }
    }
    axis(&mut svg, height - 26.0, end);
    svg.push_str("</svg>\n");
    svg
}

fn bar(svg: &mut String, flow: &Flow, y: f64, end: f64) {
    let (x, width) = (LEFT + WIDTH * flow.start / end, (WIDTH * (flow.end - flow.start) / end).max(0.3));
    // Golden angles: neighbouring chunks look different.
    let hue = flow.chunk * 137 % 360;
    let _ = writeln!(
        svg,
        r#"<rect x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{:.1}" fill="hsl({hue},65%,55%)"><title>chunk {} at {:.1} GB/s, {:.1} to {:.1} µs</title></rect>"#,
        ROW - 1.0,
        flow.chunk,
        flow.rate,
        flow.start,
        flow.end,
    );
}

fn axis(svg: &mut String, y: f64, end: f64) {
    for tick in 0..=10 {
        let share = f64::from(tick) / 10.0;
        let (x, micros) = (LEFT + WIDTH * share, end * share);
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" y1="{TOP:.0}" x2="{x:.1}" y2="{y:.1}" stroke="#00000022"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{micros:.0} µs</text>"##,
            y + 12.0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Executor, Mode, Recipe, Sketch, synthesize};
    use dynamiccl_env::cluster::Cluster;
    use dynamiccl_spec::Collective;

    #[test]
    fn a_picture_is_a_document_with_a_bar_for_each_flow() {
        let machine = Machine::from_cluster(&Cluster::load("aws_p4d").unwrap(), 2, 4).unwrap();
        let sketch = Sketch::new(&machine, Mode::Pair);
        let schedule = synthesize(&machine, &sketch, Collective::AllGather, 1 << 26, &Recipe::AWARE).unwrap();
        let outcome = Executor::new(&machine, &sketch, &schedule).run(1 << 26, &Backend::default(), 1, true);
        let svg = draw(&machine, &outcome.flows, "a < b");
        let document = roxmltree::Document::parse(&svg).unwrap();
        let bars = document.descendants().filter(|node| node.has_tag_name("title")).count();
        assert_eq!(bars, outcome.flows.len());
        assert!(bars >= schedule.sends.len());
    }
}
