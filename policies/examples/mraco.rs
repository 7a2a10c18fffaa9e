//! Prints how many trials MRACO spends in TuCCL's space and how good what it finds is, task by task.
//!
//!     cargo run --release -p dynamiccl-policies --example mraco

#[path = "../tests/search/tasks.rs"]
mod tasks;

use dynamiccl_spec::math::{exp, ln};
use tasks::{DRAWN, Task, median, mraco, tasks};

fn main() {
    println!("# median of 5 seeds; a trial is one full measurement; the grid has 3600");
    println!("# {:40}  {:>7}  {:>7}  {:>7}  {:>7}", "task", "trials", "most", "quality", "worst");
    let mut nominal = Sums::default();
    nominal.add_all("nominal world", tasks(None));
    let mut drawn = Sums::default();
    for world in DRAWN {
        drawn.add_all(&format!("world {world}"), tasks(Some(world)));
    }
    println!("#");
    nominal.say("nominal world");
    drawn.say("drawn worlds");
}

/// What came of all searches.
#[derive(Default)]
struct Sums {
    trials: f64,
    log_quality: f64,
    searches: f64,
    /// Medians of tasks: the most trials, the least quality.
    tasks: Vec<(f64, f64)>,
}

impl Sums {
    fn add_all(&mut self, world: &str, tasks: Vec<Task>) {
        println!("# {world}");
        tasks.iter().for_each(|task| self.add(task));
    }

    fn add(&mut self, task: &Task) {
        let outcomes: Vec<_> = (1..=5).map(|seed| mraco(task, seed)).collect();
        for outcome in &outcomes {
            self.trials += outcome.trials;
            self.log_quality += ln(outcome.quality);
            self.searches += 1.0;
        }
        let trials = || outcomes.iter().map(|outcome| outcome.trials);
        let quality = || outcomes.iter().map(|outcome| outcome.quality);
        let (middle, middle_quality) = (median(trials()), median(quality()));
        self.tasks.push((middle, middle_quality));
        println!(
            "  {:40}  {middle:7.1}  {:7.1}  {middle_quality:7.4}  {:7.4}",
            task.name,
            trials().fold(0.0, f64::max),
            quality().fold(1.0, f64::min),
        );
    }

    fn say(&self, worlds: &str) {
        let (trials, quality) = (self.trials / self.searches, exp(self.log_quality / self.searches));
        println!("# {worlds}: mean trials {trials:.1}, geometric mean of quality {quality:.4}");
        let most = self.tasks.iter().map(|task| task.0).fold(0.0, f64::max);
        let least = self.tasks.iter().map(|task| task.1).fold(1.0, f64::min);
        println!(
            "#   of {} tasks' medians: at most {most:.1} trials, quality at least {least:.4}",
            self.tasks.len()
        );
    }
}
