//! TuCCL's ablation on its testbeds: sketch only, settings only, both; and its table III.
//!
//!     cargo run --release -p dynamiccl-synth --example ablation

use dynamiccl_env::cluster::Cluster;
use dynamiccl_spec::Bytes;
use dynamiccl_spec::Collective::{AllGather, AllReduce};
use dynamiccl_synth::joint::{Setting, Task, Variant};
use dynamiccl_synth::{Backend, Machine, Mode};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn machine(testbed: &str, nodes: u32, ranks: u32) -> Outcome<Machine> {
    let file = format!("{}/clusters/{testbed}.toml", env!("CARGO_MANIFEST_DIR"));
    Ok(Machine::from_cluster(&Cluster::load(&file)?, nodes, ranks)?)
}

/// Settings with a synthesizer as TACCL's and one chunk.
fn plain(setting: &Setting) -> bool {
    setting.synthesizer == Variant::Greedy && setting.chunks == 1
}

fn main() -> Outcome<()> {
    ablation()?;
    table_three()
}

fn ablation() -> Outcome<()> {
    println!("# times as fast as MSCCL's own setting with a full mesh; greedy as TACCL assumes, one chunk");
    println!("# aware: joint, with synthesizers that know of NICs, and up to 2 chunks");
    println!(
        "# {:18} {:10} {:>6}  {:>6}  {:>8}  {:>6}  {:>6}",
        "machine", "collective", "size", "sketch", "settings", "joint", "aware"
    );
    for (testbed, nodes, ranks) in
        [("tuccl_v100", 2, 4), ("tuccl_v100", 3, 4), ("tuccl_a100", 2, 4), ("tuccl_a100", 2, 8)]
    {
        let machine = machine(testbed, nodes, ranks)?;
        for collective in [AllGather, AllReduce] {
            for bytes in [16 << 10, 64 << 10, 4 << 20, 64 << 20, 1 << 30] {
                let task = Task::new(&machine, collective, bytes);
                let start = task.micros(&Setting::start());
                let best = |kept: &dyn Fn(&Setting) -> bool| start / task.grid(kept)[0].1;
                let own = |setting: &Setting| setting.backend == Backend::default();
                let full = |setting: &Setting| setting.sketch == Mode::Full;
                let sketch = best(&|s| plain(s) && own(s) && !full(s));
                let settings = best(&|s| plain(s) && full(s));
                let joint = best(&plain);
                let aware = best(&|s| s.chunks <= 2 && s.backend.threads == 512);
                let name = format!("{} {ranks}", machine.name);
                println!(
                    "  {name:18} {collective:10} {:>6}  {sketch:6.2}  {settings:8.2}  {joint:6.2}  {aware:6.2}",
                    Bytes(bytes).to_string()
                );
            }
        }
    }
    Ok(())
}

fn table_three() -> Outcome<()> {
    println!(
        "# table III at 4 GiB on two nodes of 8 A100: times as fast as C0, by GB/s of a network channel"
    );
    println!("# {:>4}  {:10}  C0 to C5", "GB/s", "collective");
    for rate in [11.0, 3.0, 1.6] {
        let mut machine = machine("tuccl_a100", 2, 8)?;
        machine.rates.network_channel = rate;
        for collective in [AllGather, AllReduce] {
            let task = Task::new(&machine, collective, 4 << 30);
            let time = |(sketch, channels, mebibytes): (Mode, u32, u64)| {
                let backend = Backend { channels, buffer: mebibytes << 20, ..Backend::default() };
                task.micros(&Setting { sketch, backend, ..Setting::start() })
            };
            let (full, pair) = (Mode::Full, Mode::Pair);
            let times = [(full, 1, 4), (full, 1, 8), (full, 4, 4), (pair, 1, 8), (pair, 4, 4), (pair, 4, 8)]
                .map(time);
            let gains = times.map(|time| format!("{:.2}", times[0] / time)).join("  ");
            println!("  {rate:4.1}  {collective:10}  {gains}");
        }
    }
    Ok(())
}
