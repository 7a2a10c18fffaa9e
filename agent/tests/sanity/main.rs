//! Tasks whose solution is known, for the real network and the real trainer: what each needs to be learned
//! (gradients, memory, masks, credit, gates) can be broken by itself and is seen here.

mod delayed;
mod gated;
mod identity;
mod masks;
mod memory;
mod networks;
mod task;
mod threads;
mod train;

use dynamiccl_env::gym::check::{CheckOptions, check};

use task::{Rules, Task};

fn keeps_the_contract<R: Rules>(rules: &R) {
    let options = CheckOptions { steps: 2_000, seeds: vec![1, 2], ..CheckOptions::default() };
    let make = || Ok::<_, ()>(Task::new(rules.clone()));
    let report = check(make, &options, |_| Ok(())).expect("nothing stops it");
    let broken: Vec<_> = report.broken().map(|rule| (rule.name, &rule.detail)).collect();
    assert!(report.ok(), "{broken:?}");
}

#[test]
fn every_task_keeps_the_contract_of_environments() {
    keeps_the_contract(&identity::Identity::default());
    keeps_the_contract(&memory::Recall::new(memory::Cue::Context, 1));
    keeps_the_contract(&memory::Recall::new(memory::Cue::History, 1));
    keeps_the_contract(&masks::Nearest::default());
    keeps_the_contract(&delayed::Late::default());
    keeps_the_contract(&gated::Gated::new(0.5));
}
