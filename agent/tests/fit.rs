//! Fitting a policy to a recorded sweep: where it begins, and that only the time depends on threads.

use std::path::Path;
use std::sync::Arc;

use dynamiccl_agent::fit::{Fit, Ground, Setup, usual};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::swept::Swept;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::network::{Shape, Weights};

fn setup(steps: u64) -> Setup {
    let sweep = Path::new(env!("CARGO_MANIFEST_DIR")).join("../env/tests/data/live-h200/10gbit_4ranks.csv");
    let shipped = Frozen::shipped().unwrap();
    Setup {
        policy: shipped.weights,
        margin: shipped.about.margin,
        ground: Ground::Sweeps(Swept::read(&sweep, None).unwrap()),
        doubts: 0.5,
        stage: Arc::clone(&Curriculum::load("smoke").unwrap().stages[0]),
        simulated: 0.25,
        config: usual(),
        steps,
        enough: 0.99,
        seed: 1,
        threads: 2,
        constants: Arc::new(ConstantsFile::full()),
    }
}

/// Whoever goes on from a policy has that policy until the first step.
#[test]
fn a_fit_begins_with_the_policy_itself() {
    let setup = setup(4096);
    let fit = Fit::new(setup.clone()).unwrap();
    assert_eq!(fit.weights(), setup.policy);
    assert_eq!(fit.steps(), 0);
}

#[test]
fn a_policy_with_the_memory_of_a_job_is_refused() {
    let mut setup = setup(4096);
    let memory = setup.policy.trained().map(<[f32]>::to_vec);
    setup.policy.remember(memory.each_ref().map(Vec::as_slice));
    let error = Fit::new(setup).unwrap_err().to_string();
    assert!(error.contains("export --history") && error.contains("fit the policy that"), "{error}");
}

#[test]
fn what_is_left_is_never_worse_and_the_same_on_any_number_of_threads() {
    let fitted = |threads| {
        let mut fit = Fit::new(Setup { threads, ..setup(8192) }).unwrap();
        while !fit.done() {
            fit.update().unwrap();
        }
        fit.judge().unwrap();
        fit
    };
    let fit = fitted(1);
    assert_eq!(fit.steps(), 8192);
    assert!(fit.best().headroom() > fit.before().headroom(), "{} is no more", fit.best().headroom());
    assert_ne!(fit.weights(), setup(8192).policy);
    assert_eq!(fitted(2).weights(), fit.weights());
}

#[test]
fn a_policy_of_another_shape_keeps_it() {
    let shape = Shape { embedding: 8, memory: 8, expert: 8, resource: 8 };
    let mut fit = Fit::new(Setup { policy: Weights::untrained(shape), ..setup(1024) }).unwrap();
    assert_eq!(fit.before().headroom(), 0.0, "an untrained network is NCCL's default");
    fit.update().unwrap();
    assert_eq!(fit.weights().shape(), shape);
}
