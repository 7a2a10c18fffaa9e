//! A seed decides every bit: not the number of threads, nor whether training was put away in between.

use std::sync::Arc;

use dynamiccl_agent::Config;
use dynamiccl_agent::config::RolloutConfig;
use dynamiccl_agent::learn::Device;
use dynamiccl_agent::subject::Knobs;
use dynamiccl_agent::trainer::{At, Trainer};
use dynamiccl_agent::training::{Setup, Training};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;

use crate::identity::Identity;
use crate::memory::{Cue, Recall};
use crate::task::{Rules, Task};
use crate::train::{beginner, config, makings, train};

const UPDATES: u32 = 4;

fn bits<R: Rules>(trainer: &Trainer<Task<R>>) -> Vec<u32> {
    trainer.params().values().iter().map(|x| x.to_bits()).collect()
}

fn trained<R: Rules>(rules: &R, threads: usize) -> Vec<u32> {
    let mut trainer = beginner(rules, &config(), threads);
    train(&mut trainer, 0..UPDATES, UPDATES);
    bits(&trainer)
}

#[test]
fn any_number_of_threads_ends_with_the_same_bits() {
    let rules = Recall::new(Cue::Context, 1);
    let one = trained(&rules, 1);
    assert!(one == trained(&rules, 1), "once more");
    assert!(one == trained(&rules, 2), "two threads");
    assert!(one == trained(&rules, 3), "three threads");
    assert!(one != trained(&Identity::default(), 1), "another task");
}

#[test]
fn an_agent_that_was_put_away_goes_on_with_the_same_bits() {
    let (rules, config) = (Recall::new(Cue::Context, 1), config());
    let mut trainer = beginner(&rules, &config, 1);
    train(&mut trainer, 0..2, UPDATES);
    let saved = trainer.save();
    let mut again =
        Trainer::restore(makings(&config, 2), saved, || Task::new(rules.clone())).expect("the same");
    train(&mut trainer, 2..UPDATES, UPDATES);
    train(&mut again, 2..UPDATES, UPDATES);
    assert!(bits(&trainer) == bits(&again));
    assert!(bits(&trainer) == trained(&rules, 1), "putting away changes nothing");
}

/// A run over the simulator, after some updates, as it would be written down.
fn simulated(threads: usize) -> String {
    let config = config();
    let rollout =
        RolloutConfig { environments: 6, refresh: 4, held: 0.25, hindsight: 0.25, ..config.rollout };
    let setup = Setup {
        subject: Knobs {
            curriculum: Curriculum::load("smoke").expect("a curriculum of ours"),
            constants: Arc::new(ConstantsFile::full()),
            schedules: None,
        },
        config: Config { rollout, ..config },
        seed: 3,
        threads,
        device: Device::Flex,
    };
    let mut training = Training::new(setup).expect("a run that begins");
    for _ in 0..2 {
        training.step().expect("an update");
    }
    serde_json::to_string(&training.snapshot()).expect("plain numbers")
}

#[test]
fn the_simulator_is_no_exception() {
    let one = simulated(1);
    assert!(one == simulated(2), "two threads");
}

/// What a policy has become is too far from what has acted: the rest of the epochs is left out, and the minibatch that
/// showed it moves nothing.
#[test]
fn an_update_that_has_gone_far_enough_stops() {
    let rules = Recall::new(Cue::Context, 1);
    let parameters = |divergence: f32| {
        let mut config = config();
        (config.optimiser.divergence, config.optimiser.minibatches) = (divergence, 1);
        let mut trainer = beginner(&rules, &config, 1);
        let update =
            trainer.update(At { stage: 0, step: 0, share: 0.0 }).expect("a task that can be learned");
        (update.epochs, bits(&trainer))
    };
    let (all, everything) = parameters(0.0);
    let (stopped, once) = parameters(1e-9);
    assert_eq!((all, stopped), (4, 1));
    let mut short = config();
    (short.optimiser.epochs, short.optimiser.minibatches) = (1, 1);
    let mut trainer = beginner(&rules, &short, 1);
    train(&mut trainer, 0..1, UPDATES);
    assert!(once == bits(&trainer), "as after one epoch");
    assert!(once != everything);
}
