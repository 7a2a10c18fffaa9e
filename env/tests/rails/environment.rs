//! Photonic rails as an environment.

use std::convert::Infallible;
use std::sync::Arc;

use dynamiccl_env::gym::check::{CheckOptions, check};
use dynamiccl_env::gym::{Action, Dressed, Env, Observation, RandomActor};
use dynamiccl_env::rails::{RailsEnv, RailsStage};
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};

fn env() -> RailsEnv {
    RailsEnv::new(Arc::new(RailsStage::builtin()))
}

#[test]
fn it_keeps_the_contract() {
    let options = CheckOptions { steps: 3000, seeds: vec![1, 2], ..CheckOptions::default() };
    let report = check(|| Ok::<_, Infallible>(env()), &options, |_| Ok(())).unwrap();
    assert!(report.ok(), "{report:?}");
    let dressed = || Ok::<_, Infallible>(Dressed::new(env()).expect("its numbers fit"));
    let report = check(dressed, &CheckOptions { steps: 500, ..options }, |_| Ok(())).unwrap();
    assert!(report.ok(), "{report:?}");
}

#[test]
fn in_clothes_it_shows_the_same_numbers_in_other_places() {
    let (mut bare, mut dressed) = (env(), Dressed::new(env()).unwrap());
    let mut seen = [Observation::new(bare.spaces()), Observation::new(dressed.spaces())];
    assert_eq!((seen[1].context.len(), seen[1].history.len()), (CONTEXT_WIDTH, HISTORY_WIDTH));
    let [plain, worn] = &mut seen;
    bare.reset(Some(3), plain).unwrap();
    dressed.reset(Some(3), worn).unwrap();
    let mut actor = RandomActor::new(1);
    for _ in 0..50 {
        let sum = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).sum::<f64>();
        // One number more: the role of a call, which chooses the expert.
        assert!((sum(&worn.context) - sum(&plain.context) - 1.0).abs() < 1e-4);
        assert!((sum(&worn.history) - sum(&plain.history)).abs() < 1e-4);
        assert_eq!((worn.mask, worn.decides), (plain.mask, plain.decides));
        let action = actor.act(plain);
        let [a, b] = [bare.step(&action, plain).unwrap(), dressed.step(&action, worn).unwrap()];
        assert_eq!(a, b);
        if a.terminated {
            bare.reset(None, plain).unwrap();
            dressed.reset(None, worn).unwrap();
        }
    }
}

#[test]
fn an_episode_can_be_begun_once_more() {
    let mut env = env();
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(4), &mut seen).unwrap();
    env.reset(None, &mut seen).unwrap();
    let (place, first) = (env.place(), seen.clone());
    env.reset(Some(8), &mut seen).unwrap();
    env.rejoin(place, &mut seen).unwrap();
    assert_eq!(seen, first);
}

/// The path head can be told from its rewards: over the hosts' network, whole parameters are a bad idea and a
/// synchronisation is not.
#[test]
fn rewards_tell_good_paths_from_bad_ones() {
    let mut rewards = [0.0, 0.0];
    for (at, path) in [0u8, 2].into_iter().enumerate() {
        let mut env = env();
        let mut seen = Observation::new(env.spaces());
        for seed in 0..20 {
            env.reset(Some(seed), &mut seen).unwrap();
            loop {
                let mut action = Action { choice: [0; 5], exploratory: false };
                action.choice[0] = path;
                action.choice[1] = u8::from(seen.mask[1] == 0b11);
                let moved = env.step(&action, &mut seen).unwrap();
                rewards[at] += moved.reward;
                if moved.terminated {
                    break;
                }
            }
        }
    }
    assert!(rewards[1] > rewards[0], "a split costs less than the rule: {rewards:?}");
}

#[test]
fn a_wrong_file_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    let text = include_str!("../../../curricula/rails.toml");
    for (from, to, says) in [
        ("schema = 1", "schema = 2", "schema = 2"),
        ("iterations = 4", "iterations = 0", "iterations = 0"),
        ("compute = [0.0, 0.1]", "compute = [0.0, 0.9]", "jitter = 0.9"),
        ("delay_ms = [1.0, 500.0]", "delay_ms = [9.0, 5.0]", "delay_ms = [9, 5]"),
        ("llama3_8b", "llama3_8", "did you mean \"llama3_8b\""),
        ("description", "descriptoin", "unknown field `descriptoin`"),
        ("pp = [2, 3, 4, 8, 16]", "pp = [1, 2]", "pp = 1: "),
        ("pp = [2, 3, 4, 8, 16]", "pp = [2, 0]", "pp = 0: "),
        ("pp = [2, 3, 4, 8, 16]", "pp = [2, 99, 3]", "pp = 99: "),
        ("fsdp = [2, 4]", "fsdp = [2, 1]", "dp = 1: "),
        ("fsdp = [2, 4]", "fsdp = [2, 4000000000]", "dp = 4000000000: "),
        ("micro_batches_per_stage = [1, 2]", "micro_batches_per_stage = [1, 0]", "micro_batches = 0: "),
        ("micro_batches_per_stage = [1, 2]", "micro_batches_per_stage = [1, 4000000000]", "give fewer"),
        ("gflops = [20300, 40000, 80000]", "gflops = [20300, 0]", "flops"),
    ] {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let error = RailsStage::load(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("mine.toml"), "{error}");
    }
    assert!(RailsStage::load("rials").unwrap_err().to_string().contains("\"rails\""));
}
