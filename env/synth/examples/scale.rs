//! Prints how long the synthesis of an AllGather takes on one thread, and how near to the NICs' bound it is: as planned,
//! with every link used alone, and as the executor has it, where links are shared from moment to moment.
//!
//!     cargo run --release -p dynamiccl-synth --example scale

use std::time::Instant;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_spec::Collective;
use dynamiccl_synth::bound::lower_bound;
use dynamiccl_synth::{Backend, Executor, Machine, Mode, Recipe, Sketch, synthesize};

const BYTES: u64 = 4 << 30;
/// Of these, whichever is better: small tiles follow each other sooner, large ones wait less often.
const BUFFERS: [u64; 2] = [1 << 20, 4 << 20];

/// ms that this process has been on a CPU, where the system says so: others may be on it too.
fn on_cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::load(concat!(env!("CARGO_MANIFEST_DIR"), "/clusters/tuccl_a100.toml"))?;
    println!(
        "# 8 A100 and 4 x 100 Gb/s a node, AllGather of 4 GiB, sketch pair, over NICs; of the NICs' bound:"
    );
    println!("# ranks  synthesizer  chunks      sends   wall ms    cpu ms    planned  executed");
    for (nodes, chunks) in [(2, 4), (8, 1), (32, 1), (128, 1)] {
        let machine = Machine::from_cluster(&cluster, nodes, 8)?;
        let sketch = Sketch::new(&machine, Mode::Pair);
        let bound = lower_bound(&machine, Collective::AllGather, BYTES);
        for recipe in [Recipe::AWARE.with_chunks(chunks), Recipe::DIRECT] {
            let (mut wall, mut cpu) = (f64::INFINITY, f64::INFINITY);
            let make = || synthesize(&machine, &sketch, Collective::AllGather, BYTES, &recipe);
            for _ in 0..if nodes > 32 { 2 } else { 9 } {
                let (clock, before) = (Instant::now(), on_cpu());
                make()?;
                wall = (clock.elapsed().as_secs_f64() * 1e3).min(wall);
                cpu = cpu.min(on_cpu().zip(before).map_or(f64::INFINITY, |(after, before)| after - before));
            }
            let schedule = make()?;
            let executor = Executor::new(&machine, &sketch, &schedule);
            let executed = BUFFERS
                .map(|buffer| executor.micros(BYTES, &Backend { channels: 4, buffer, ..Backend::default() }));
            let of_bound = [schedule.planned_us, executed[0].min(executed[1])].map(|micros| micros / bound);
            println!(
                "  {:5}  {:11}  {:6}  {:9}  {wall:8.3}  {cpu:8.3}  {:9.4}  {:8.4}",
                8 * nodes,
                recipe.synthesizer.name(),
                recipe.chunks,
                schedule.sends.len(),
                of_bound[0],
                of_bound[1],
            );
        }
    }
    Ok(())
}
