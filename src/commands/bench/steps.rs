//! How fast the environment steps: random legal actions, resets included.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::gym::{EnvError, RandomActor, Slot, VecEnv, seed_of};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::statistics::median;

/// The curriculum whose jobs are run: it has every feature, and replays the stages before it.
const CURRICULUM: &str = "stage3";
/// Environments side by side.
const ENVS: usize = 64;
/// Steps of each environment in one round: long beside the start of a thread.
const STEPS: usize = 250;
/// Calls of an episode, over which the environments are spread before anything is timed: every round
/// then has its share of resets.
const EPISODE: usize = 1000;
/// Fewest rounds, and least time.
const ROUNDS: usize = 25;
const LEAST: Duration = Duration::from_millis(2500);

/// Environments on some threads.
struct Bench {
    envs: VecEnv<SimEnv>,
    seed: u64,
}

/// Steps a second on one thread, and how many times as many on two: medians over rounds that take turns,
/// so that whatever else the machine does meets both.
pub fn steps_per_s(constants: &ConstantsFile, seed: u64) -> Result<[f64; 2]> {
    let mut benches = [Bench::new(constants, seed, 1)?, Bench::new(constants, seed, 2)?];
    let (mut rates, mut gains) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while rates.len() < ROUNDS || start.elapsed() < LEAST {
        let mut seconds = [0.0; 2];
        for (bench, seconds) in benches.iter_mut().zip(&mut seconds) {
            let begun = Instant::now();
            bench.round(|_| STEPS)?;
            *seconds = begun.elapsed().as_secs_f64();
        }
        rates.push((ENVS * STEPS) as f64 / seconds[0]);
        gains.push(seconds[0] / seconds[1]);
    }
    Ok([rates, gains].map(|figures| median(figures).unwrap_or(0.0)))
}

impl Bench {
    fn new(constants: &ConstantsFile, seed: u64, threads: usize) -> Result<Self> {
        let stage = &Curriculum::load(CURRICULUM)?.stages[0];
        let constants = Arc::new(constants.clone());
        let envs = (0..ENVS).map(|_| SimEnv::new(Arc::clone(stage), Arc::clone(&constants)));
        let mut bench = Bench { envs: VecEnv::new(envs, threads), seed };
        bench.envs.reset(seed)?;
        bench.round(|env| env * EPISODE / ENVS)?;
        Ok(bench)
    }

    /// Takes as many steps in each environment as it is told.
    fn round(&mut self, steps: impl Fn(usize) -> usize + Sync) -> Result<(), EnvError> {
        self.seed = self.seed.wrapping_add(1);
        let seed = self.seed;
        let shards = self.envs.in_shards(|first, slots| shard(first, slots, seed, &steps));
        shards.into_iter().collect()
    }
}

/// One round of a shard. Environments take turns, as they do where somebody acts for all of them.
fn shard(
    first: usize,
    slots: &mut [Slot<SimEnv>],
    seed: u64,
    steps: &impl Fn(usize) -> usize,
) -> Result<(), EnvError> {
    let actor = |at| RandomActor::new(seed_of(seed, first + at));
    let mut actors: Vec<RandomActor> = (0..slots.len()).map(actor).collect();
    let most = (0..slots.len()).map(|at| steps(first + at)).max().unwrap_or(0);
    for step in 0..most {
        for (at, (slot, actor)) in slots.iter_mut().zip(&mut actors).enumerate() {
            if step < steps(first + at) {
                let action = actor.act(slot.observation());
                slot.step(&action)?;
            }
        }
    }
    Ok(())
}
