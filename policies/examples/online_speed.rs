//! Prints what a decision and what it learns cost each online tuner, over the calls of one kind.
//!
//!     cargo run --release -p dynamiccl-policies --example online_speed

#[path = "../tests/search/online.rs"]
mod online;

use std::time::Instant;

use dynamiccl_policies::online::ROSTER;
use dynamiccl_spec::Collective;
use online::Bench;

const CALL: (Collective, u64) = (Collective::AllReduce, 4 << 20);
const CALLS: usize = 10_000;

fn main() {
    let bench = Bench::new("dgx_a100", 2, 1);
    println!("# {:14}  {:>10}  {:>10}  {:>6}  {:>7}", "tuner", "ns a call", "tried", "gain", "quality");
    for entry in ROSTER {
        let mut tuner = (entry.make)(1);
        let begun = Instant::now();
        let calls = bench.calls(tuner.as_mut(), CALL, CALLS, true);
        let nanos = begun.elapsed().as_nanos() as f64 / CALLS as f64;
        let tried = calls.decisions.iter().filter(|decision| decision.exploratory).count();
        let gain = calls.own / calls.micros[CALLS - 1];
        let quality = bench.best(CALL) / calls.micros[CALLS - 1];
        println!("  {:14}  {nanos:10.0}  {tried:10}  {gain:6.3}  {quality:7.4}", tuner.name());
    }
    println!("# the simulator's own time is in it: some 150 ns a call");
}
