//! Prints how long the synthesis of an AllGather takes on one thread, and how near to the NICs' bound it is.
//!
//!     cargo run --release -p dynamiccl-synth --example scale

use std::time::Instant;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_spec::Collective;
use dynamiccl_synth::bound::lower_bound;
use dynamiccl_synth::{Machine, Mode, Recipe, Sketch, synthesize};

/// ms that this process has been on a CPU, where the system says so: others may be on it too.
fn on_cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::load(concat!(env!("CARGO_MANIFEST_DIR"), "/clusters/tuccl_a100.toml"))?;
    println!("# 8 A100 and 4 x 100 Gb/s a node, AllGather of 4 GiB, sketch pair, greedy over NICs");
    println!("# ranks  chunks      sends   wall ms    cpu ms  of the bound");
    for (nodes, chunks) in [(2, 4), (8, 1), (32, 1), (128, 1)] {
        let machine = Machine::from_cluster(&cluster, nodes, 8)?;
        let sketch = Sketch::new(&machine, Mode::Pair);
        let recipe = Recipe::AWARE.with_chunks(chunks);
        let (mut wall, mut cpu, mut sends, mut planned) = (f64::INFINITY, f64::INFINITY, 0, 0.0);
        for _ in 0..if nodes > 32 { 2 } else { 9 } {
            let (clock, before) = (Instant::now(), on_cpu());
            let schedule = synthesize(&machine, &sketch, Collective::AllGather, 4 << 30, &recipe)?;
            wall = (clock.elapsed().as_secs_f64() * 1e3).min(wall);
            cpu = cpu.min(on_cpu().zip(before).map_or(f64::INFINITY, |(after, before)| after - before));
            (sends, planned) = (schedule.sends.len(), schedule.planned_us);
        }
        let bound = lower_bound(&machine, Collective::AllGather, 4 << 30);
        println!("  {:5}  {chunks:6}  {sends:9}  {wall:8.3}  {cpu:8.3}  {:12.4}", 8 * nodes, planned / bound);
    }
    Ok(())
}
