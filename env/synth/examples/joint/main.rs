//! Joint MRACO against the joint grid, task by task: trials, and how good what it finds is by true times.
//!
//!     cargo run --release -p dynamiccl-synth --example joint [SEEDS]

mod searches;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_spec::Bytes;
use dynamiccl_spec::Collective::{self, AllGather, AllReduce};
use dynamiccl_spec::math::{exp, ln};
use dynamiccl_synth::Machine;
use dynamiccl_synth::joint::Task;

/// Testbed, nodes, ranks of a node, collective, size.
const TASKS: [(&str, u32, u32, Collective, u64); 8] = [
    ("tuccl_v100", 2, 4, AllGather, 64 << 10),
    ("tuccl_v100", 2, 4, AllGather, 64 << 20),
    ("tuccl_v100", 2, 4, AllReduce, 4 << 20),
    ("tuccl_v100", 2, 4, AllReduce, 1 << 30),
    ("tuccl_v100", 3, 4, AllGather, 4 << 20),
    ("tuccl_v100", 3, 4, AllReduce, 64 << 20),
    ("tuccl_a100", 2, 4, AllGather, 64 << 20),
    ("tuccl_a100", 2, 4, AllReduce, 16 << 20),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(3), |word| word.parse())?;
    let grid_trials = searches::space().points();
    println!(
        "# {seeds} seeds; the grid has {grid_trials} settings; quality: best time of all over the found one's"
    );
    println!("# {:32}  {:>7}  {:>7}  {:>7}  what the last seed found", "task", "trials", "quality", "worst");
    let (mut trials, mut logs, mut count) = (0.0, 0.0, 0.0);
    for (testbed, nodes, ranks, collective, bytes) in TASKS {
        let file = format!("{}/clusters/{testbed}.toml", env!("CARGO_MANIFEST_DIR"));
        let machine = Machine::from_cluster(&Cluster::load(&file)?, nodes, ranks)?;
        let task = Task::new(&machine, collective, bytes);
        let best = task.grid(|_| true)[0].1;
        let (mut spent, mut log, mut worst) = (0.0, 0.0, 1.0_f64);
        let mut setting = None;
        for seed in 1..=seeds {
            let found = searches::mraco(&task, seed);
            spent += found.trials;
            log += ln(best / found.micros);
            worst = worst.min(best / found.micros);
            setting = Some(found.setting);
        }
        let seeds = seeds as f64;
        let name = format!("{} {ranks} {collective} {}", machine.name, Bytes(bytes));
        let quality = exp(log / seeds);
        println!(
            "  {name:32}  {:7.1}  {quality:7.4}  {worst:7.4}  {}",
            spent / seeds,
            setting.map_or(String::new(), |setting| format!("{setting:?}"))
        );
        (trials, logs, count) = (trials + spent, logs + log, count + seeds);
    }
    let mean = trials / count;
    let fewer = 100.0 * (1.0 - mean / grid_trials as f64);
    println!(
        "# mean trials {mean:.1} ({fewer:.2} % fewer), geometric mean of quality {:.4}",
        exp(logs / count)
    );
    Ok(())
}
