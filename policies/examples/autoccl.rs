//! Prints what coordinate descent gains over NCCL's own choices on AutoCCL's two testbeds, by size, and how good
//! its choice is beside the best of all settings.
//!
//!     cargo run --release -p dynamiccl-policies --example autoccl

#[path = "../tests/search/autoccl.rs"]
mod autoccl;
#[path = "../tests/search/online.rs"]
mod online;

use autoccl::{COLLECTIVES, Cell, TESTBEDS, coordinate_cells, mean};

const WORLDS: u64 = 20;

fn main() {
    println!("# coordinate descent, geometric mean of NCCL's time over its own, {WORLDS} worlds, simulated");
    for (cluster, nodes) in TESTBEDS {
        let cells = coordinate_cells(cluster, nodes, WORLDS);
        println!("# {nodes} x {cluster}");
        println!("# {:>9}  {}  quality  trials", "KiB", COLLECTIVES.map(|c| format!("{c:>13}")).join("  "));
        let mut sizes: Vec<u64> = cells.iter().map(|cell| cell.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            let of_size: Vec<&Cell> = cells.iter().filter(|cell| cell.bytes == bytes).collect();
            print!("  {:>9}", bytes >> 10);
            for collective in COLLECTIVES {
                let cells = of_size.iter().copied().filter(|cell| cell.collective == collective);
                print!("  {:>13.3}", mean(cells.map(|cell| cell.gain)));
            }
            let quality = mean(of_size.iter().map(|cell| cell.quality));
            println!("  {quality:7.3}  {:6.1}", mean_trials(of_size.iter().copied()));
        }
        let gain = mean(cells.iter().map(|cell| cell.gain));
        let quality = mean(cells.iter().map(|cell| cell.quality));
        let trials = mean_trials(&cells);
        println!("  overall {gain:.3}, quality {quality:.4}, {trials:.1} trials of 3 calls each");
    }
}

fn mean_trials<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> f64 {
    let (sum, count) = cells.into_iter().fold((0, 0), |(sum, n), cell| (sum + cell.trials, n + 1));
    sum as f64 / f64::from(count)
}
