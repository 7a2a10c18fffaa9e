//! Prints how much the best setting beats NCCL's own over every built-in cluster.
//!
//!     cargo run --release -p dynamiccl-env --example headroom [-- WORLDS [WORST [CONSTANTS]]]
//!
//! WORLDS drawn worlds (20 unless told) and the nominal one; then the WORST cells of every tier (12 unless
//! told), with the CONSTANTS that `validate` takes. Columns are bands of size, as they start; a number is a geometric mean over cells.

use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::headroom::{Cell, NODES, mean, sizes, survey};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Setting;
use dynamiccl_env::world::World;
use dynamiccl_spec::Collective;

/// Bands of size: name, smallest and largest.
const BANDS: [(&str, u64, u64); 6] = [
    ("1-2K", 0, 1 << 11),
    ("4-32K", 1 << 12, 1 << 15),
    ("64K-1M", 1 << 16, 1 << 20),
    ("2-64M", 1 << 21, 1 << 26),
    ("128-256M", 1 << 27, 1 << 28),
    (">256M", (1 << 28) + 1, u64::MAX),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: usize| {
        arguments.get(at).map_or(otherwise, |given| given.parse().expect("a whole number"))
    };
    let (drawn, worst) = (number(0, 20), number(1, 12));
    let constants = ConstantsFile::load(arguments.get(2).map_or(ConstantsFile::USUAL, String::as_str))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut worlds = vec![World::nominal(&constants)];
    worlds.extend((0..drawn).map(|seed| World::draw(&constants, seed as u64)));
    let clusters = Cluster::names().map(|name| Cluster::load(name).expect("a cluster of ours"));
    let mut cells: Vec<Cell> =
        clusters.flat_map(|cluster| survey(&cluster, &NODES, &sizes(), &worlds)).collect();
    cells.sort_by(|a, b| b.headroom.total_cmp(&a.headroom));
    for tier in 1..=4 {
        let of_tier: Vec<&Cell> = cells.iter().filter(|cell| cell.tier == tier).collect();
        println!("\ntier {tier}{:8}{}", "", BANDS.map(|(name, ..)| format!("{name:>10}")).concat());
        for collective in Collective::TUNED {
            row(&collective.to_string(), &of_tier, |cell| cell.collective == collective);
        }
        row("all", &of_tier, |_| true);
        for cell in of_tier.iter().take(worst) {
            describe(cell);
        }
    }
    println!("\none node, > 256 MiB");
    for cell in cells.iter().filter(|cell| cell.nodes == 1 && cell.bytes > 1 << 28).take(worst) {
        describe(cell);
    }
}

fn row(name: &str, cells: &[&Cell], wanted: impl Fn(&Cell) -> bool) {
    let band = |(_, low, high)| {
        let inside = |cell: &&&Cell| (low..=high).contains(&cell.bytes) && wanted(cell);
        mean(cells.iter().filter(inside).copied()).map_or("         -".to_owned(), |x| format!("{x:10.2}"))
    };
    println!("{name:14}{}", BANDS.map(band).concat());
}

fn describe(cell: &Cell) {
    let launch = |s: &Setting| {
        let r = &s.realised;
        format!("{} {}ch {}t {}B {:.0}us", r.pair, r.channels, r.threads, r.chunk_bytes, s.micros)
    };
    println!(
        "  {:.2} {} x {} {} {} KiB: nominal {} -> {}",
        cell.headroom,
        cell.nodes,
        cell.cluster,
        cell.collective,
        cell.bytes >> 10,
        launch(&cell.own),
        launch(&cell.best)
    );
}
