//! Prints how many trials MRACO spends in TuCCL's space and how good what it finds is, task by task.
//!
//!     cargo run --release -p dynamiccl-policies --example mraco

#[path = "../tests/search/tasks.rs"]
mod tasks;

use dynamiccl_spec::math::{exp, ln};
use tasks::{median, mraco, tasks};

fn main() {
    println!("# median of 5 seeds; a trial is one full measurement; the grid has 3600");
    println!("# {:40}  {:>7}  {:>7}  {:>7}  {:>7}", "task", "trials", "most", "quality", "worst");
    let (mut spent, mut log_quality, mut searches) = (0.0, 0.0, 0.0);
    for task in tasks() {
        let outcomes: Vec<_> = (1..=5).map(|seed| mraco(&task, seed)).collect();
        for outcome in &outcomes {
            spent += outcome.trials;
            log_quality += ln(outcome.quality);
            searches += 1.0;
        }
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
    let (trials, quality) = (spent / searches, exp(log_quality / searches));
    println!("# mean trials {trials:.1}, geometric mean of quality {quality:.4}");
}
