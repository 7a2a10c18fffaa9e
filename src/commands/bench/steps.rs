//! How fast the environment steps: whole episodes of random legal actions, resets included.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::gym::{EnvError, RandomActor, Slot, VecEnv, seed_of};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::validate::median;

/// The curriculum whose jobs are run: it has every feature, and replays the stages before it.
const CURRICULUM: &str = "stage3";
/// Environments side by side.
const ENVS: usize = 64;
/// Steps of each environment in one round: an episode, so that every round has its resets.
const STEPS: usize = 1000;
/// Fewest rounds, and least time.
const ROUNDS: usize = 7;
const LEAST: Duration = Duration::from_millis(1500);

/// Steps a second on this many threads: the median over rounds.
pub fn steps_per_s(constants: &ConstantsFile, seed: u64, threads: usize) -> Result<f64> {
    let curriculum = Curriculum::load(CURRICULUM)?;
    let stage = &curriculum.stages[0];
    let constants = Arc::new(constants.clone());
    let envs = (0..ENVS).map(|_| SimEnv::new(Arc::clone(stage), Arc::clone(&constants)));
    let mut envs = VecEnv::new(envs, threads);
    envs.reset(seed)?;
    let mut rounds = Vec::new();
    let start = Instant::now();
    // The first round warms up.
    while rounds.len() <= ROUNDS || start.elapsed() < LEAST {
        let begun = Instant::now();
        let seed = seed.wrapping_add(rounds.len() as u64);
        let shards = envs.in_shards(|first, slots| round(first, slots, seed));
        shards.into_iter().collect::<Result<(), EnvError>>()?;
        rounds.push(begun.elapsed().as_secs_f64());
    }
    let seconds = median(rounds.split_off(1)).unwrap_or(f64::INFINITY);
    Ok((ENVS * STEPS) as f64 / seconds)
}

/// One round of a shard.
fn round(first: usize, slots: &mut [Slot<SimEnv>], seed: u64) -> Result<(), EnvError> {
    let actor = |at| RandomActor::new(seed_of(seed, first + at));
    let mut actors: Vec<RandomActor> = (0..slots.len()).map(actor).collect();
    for _ in 0..STEPS {
        for (slot, actor) in slots.iter_mut().zip(&mut actors) {
            let action = actor.act(slot.observation());
            slot.step(&action)?;
        }
    }
    Ok(())
}
