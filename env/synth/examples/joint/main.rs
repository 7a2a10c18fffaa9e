//! Joint MRACO against the joint grid, task by task: trials, and how good what it finds is by true times.
//!
//!     cargo run --release -p dynamiccl-synth --example joint [SEEDS]

mod searches;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_spec::Bytes;
use dynamiccl_spec::Collective::{self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
use dynamiccl_spec::math::{exp, ln};
use dynamiccl_synth::Machine;
use dynamiccl_synth::joint::Task;

/// Testbed or cluster, nodes, ranks of a node, collective, size.
type Asked = (&'static str, u32, u32, Collective, u64);

/// Those that the search was tuned on.
const TASKS: [Asked; 8] = [
    ("tuccl_v100", 2, 4, AllGather, 64 << 10),
    ("tuccl_v100", 2, 4, AllGather, 64 << 20),
    ("tuccl_v100", 2, 4, AllReduce, 4 << 20),
    ("tuccl_v100", 2, 4, AllReduce, 1 << 30),
    ("tuccl_v100", 3, 4, AllGather, 4 << 20),
    ("tuccl_v100", 3, 4, AllReduce, 64 << 20),
    ("tuccl_a100", 2, 4, AllGather, 64 << 20),
    ("tuccl_a100", 2, 4, AllReduce, 16 << 20),
];

/// Those that it never saw: other machines, sizes and collectives.
const HELD_OUT: [Asked; 10] = [
    ("dgx_h100", 1, 8, AllReduce, 8 << 20),
    ("dgx1_v100", 2, 4, ReduceScatter, 256 << 10),
    ("aws_p4d", 2, 4, ReduceScatter, 128 << 20),
    ("l40s_8pcie", 2, 4, Broadcast, 16 << 20),
    ("ib100g_1gpu", 8, 1, AllGather, 1 << 20),
    ("h100_4gpu", 2, 4, Reduce, 2 << 20),
    ("gb200_4gpu", 2, 4, AllGather, 512 << 20),
    ("a100_8_tcp25g", 2, 4, AllReduce, 128 << 10),
    ("rtx4090_8pcie", 1, 8, ReduceScatter, 32 << 20),
    ("tcp25g_1gpu", 4, 1, Broadcast, 32 << 10),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(3), |word| word.parse())?;
    let grid_trials = searches::space().points();
    println!(
        "# {seeds} seeds; the grid has {grid_trials} settings; quality: best time of all over the found one's"
    );
    for (title, tasks) in [("tuned on these", &TASKS[..]), ("held out", &HELD_OUT[..])] {
        println!(
            "#\n# {title:32}  {:>7}  {:>7}  {:>7}  what the last seed found",
            "trials", "quality", "worst"
        );
        let [trials, quality, worst] = judge(tasks, seeds)?;
        let fewer = 100.0 * (1.0 - trials / grid_trials as f64);
        println!(
            "# mean trials {trials:.1} ({fewer:.2} % fewer), geometric mean of quality {quality:.4}, worst {worst:.4}"
        );
    }
    Ok(())
}

/// Searches every task: mean trials, mean quality, and the worst of a seed.
fn judge(tasks: &[Asked], seeds: u64) -> Result<[f64; 3], Box<dyn std::error::Error>> {
    let (mut trials, mut logs, mut count, mut least) = (0.0, 0.0, 0.0, 1.0_f64);
    for &(name, nodes, ranks, collective, bytes) in tasks {
        let file = format!("{}/clusters/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let cluster = Cluster::load(name).or_else(|_| Cluster::load(&file))?;
        let machine = Machine::from_cluster(&cluster, nodes, ranks)?;
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
        (trials, logs, count, least) = (trials + spent, logs + log, count + seeds, least.min(worst));
    }
    Ok([trials / count, exp(logs / count), least])
}
