//! What the commands of `live` make of real ranks: signals, other machines' sweeps, starts by turns, interrupted beginnings.

use super::*;

/// The guard of a run.
fn guard_of(run: &Run) -> u32 {
    let is_guard = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"guard")
    };
    run.left().into_iter().find(is_guard).expect("a guard")
}

/// A whole job is ended by signals to all of its processes, some of them twice, before it is killed.
#[test]
fn a_guard_outlives_every_signal_that_a_job_is_ended_by() {
    let Victim { run, mut child, .. } = Victim::new();
    let guard = guard_of(&run);
    for name in ["-TERM", "-TERM", "-HUP", "-INT", "-QUIT"] {
        signal(name, guard);
        // A second request would end the other processes now.
        thread::sleep(Duration::from_millis(400));
    }
    signal("-KILL", child.id());
    child.wait().unwrap();
    run.assert_nothing_is_left_soon();
}
