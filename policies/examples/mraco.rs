//! Prints how many trials MRACO spends in TuCCL's space and how good what it finds is, task by task.
//!
//!     cargo run --release -p dynamiccl-policies --example mraco

#[path = "../tests/search/tasks.rs"]
mod tasks;

use tasks::{median, mraco, tasks};

fn main() {
    println!("# median of 5 seeds; a trial is one full measurement; the grid has 3600");
    println!("# {:40}  {:>7}  {:>7}  {:>7}  {:>7}", "task", "trials", "most", "quality", "worst");
    for task in tasks() {
        let outcomes: Vec<_> = (1..=5).map(|seed| mraco(&task, seed)).collect();
        let trials = || outcomes.iter().map(|outcome| outcome.trials);
        let quality = || outcomes.iter().map(|outcome| outcome.quality);
        println!(
            "  {:40}  {:7.1}  {:7.1}  {:7.4}  {:7.4}",
            task.name,
            median(trials()),
            trials().fold(0.0, f64::max),
            median(quality()),
            quality().fold(1.0, f64::min),
        );
    }
}
