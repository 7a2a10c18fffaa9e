//! Many environments side by side.

use std::sync::Arc;

use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::gym::{RandomActor, VecEnv};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;

fn envs(count: usize, threads: usize) -> VecEnv<SimEnv> {
    let stage = Curriculum::load("stage3").unwrap().stages[0].clone();
    let constants = Arc::new(ConstantsFile::full());
    let mut envs = VecEnv::new((0..count).map(|_| SimEnv::new(stage.clone(), constants.clone())), threads);
    envs.reset(5).unwrap();
    envs
}

/// Every reward and every number of the last observations.
fn run(threads: usize) -> (Vec<u64>, Vec<u32>) {
    let mut envs = envs(9, threads);
    let mut actors: Vec<_> = (0..9).map(RandomActor::new).collect();
    let mut rewards = Vec::new();
    for _ in 0..300 {
        let actions: Vec<_> =
            actors.iter_mut().enumerate().map(|(at, actor)| actor.act(envs.slot(at).observation())).collect();
        let steps = envs.step(&actions).unwrap();
        rewards.extend(steps.iter().map(|step| step.transition.reward.to_bits()));
    }
    let seen = (0..9).flat_map(|at| envs.slot(at).observation().context.to_vec());
    (rewards, seen.map(f32::to_bits).collect())
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
}

#[test]
fn each_environment_has_a_job_of_its_own() {
    let envs = envs(9, 1);
    let first: Vec<_> = (0..9).map(|at| envs.slot(at).observation().context.to_vec()).collect();
    let same = first.iter().filter(|context| **context == first[0]).count();
    assert!(same < 3, "{same} of 9 begin alike");
}

#[test]
fn the_next_episode_begins_where_one_ends() {
    let mut envs = envs(1, 1);
    let mut actor = RandomActor::new(1);
    let mut ends = 0;
    for _ in 0..2500 {
        let action = actor.act(envs.slot(0).observation());
        let step = envs.step(&[action]).unwrap().remove(0);
        let over = step.transition.terminated || step.transition.truncated;
        assert_eq!(over, step.begun.is_some());
        if let Some(info) = step.begun {
            assert_eq!((info.calls, info.last), (0, None));
            ends += 1;
        }
    }
    assert!(ends >= 2);
}
