//! The searches as their authors would judge them: few trials, good settings, on true times.

mod tasks;

use tasks::{median, mraco, tasks};

#[test]
fn mraco_saves_nine_tenths_of_the_trials_at_97_percent_of_the_quality() {
    let tasks = tasks();
    assert!(tasks.len() >= 12);
    for task in tasks {
        let outcomes: Vec<_> = (1..=5).map(|seed| mraco(&task, seed)).collect();
        let trials = median(outcomes.iter().map(|outcome| outcome.trials));
        let quality = median(outcomes.iter().map(|outcome| outcome.quality));
        assert!(trials <= 0.1 * task.surface.len() as f64, "{}: {trials} trials", task.name);
        assert!(quality >= 0.97, "{}: quality {quality}", task.name);
    }
}
