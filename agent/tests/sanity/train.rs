//! Training on a task, and how often the most probable choice is right afterwards.

use std::sync::Arc;

use dynamiccl_agent::Config;
use dynamiccl_agent::config::{LossConfig, NetworkConfig, OptimiserConfig, RolloutConfig};
use dynamiccl_agent::learn::{Device, Learner};
use dynamiccl_agent::params::Layout;
use dynamiccl_agent::trainer::{At, Makings, Trainer};
use dynamiccl_env::gym::{Action, Env, Observation};
use dynamiccl_policies::network::{Network, greedy};
use dynamiccl_spec::Mask;
use dynamiccl_spec::features::JOB_WIDTH;

use crate::task::{Rules, Task};

/// Calls that a policy is judged by.
const JUDGED: usize = 2_000;
/// Updates of a training. Every task that can be solved is after 40.
const UPDATES: u32 = 50;

/// The usual agent, as small as these tasks are.
pub fn config() -> Config {
    Config {
        network: NetworkConfig {
            embedding: 24,
            memory: 88,
            expert: 24,
            resource: 16,
            critic: 32,
            table: false,
        },
        rollout: RolloutConfig {
            environments: 32,
            steps: 16,
            held: 0.0,
            greedy: 0.0,
            calls: 4096,
            refresh: 1,
            hindsight: 0.0,
            ..RolloutConfig::default()
        },
        loss: LossConfig { entropy: [0.01, 0.001], ..LossConfig::default() },
        optimiser: OptimiserConfig {
            rate: [5e-3, 1e-3],
            epochs: 4,
            minibatches: 2,
            shards: 2,
            divergence: 0.0,
            ..OptimiserConfig::default()
        },
        ..Config::default()
    }
}

/// An agent that has not learned anything.
pub fn beginner<R: Rules>(rules: &R, config: &Config, threads: usize) -> Trainer<Task<R>> {
    let make = || Task::new(rules.clone());
    Trainer::new(makings(config, threads), 11, make, make).expect("a task that begins")
}

/// What agents are made of.
pub fn makings(config: &Config, threads: usize) -> Makings {
    let layout = Arc::new(Layout::new(&config.network, 0));
    let learner = Learner::new(layout, Device::Flex).expect("always there");
    Makings { config: config.clone(), learner, threads }
}

/// How often an agent is right that was trained with this configuration.
pub fn right_after_training<R: Rules>(rules: &R, config: &Config) -> f64 {
    let mut trainer = beginner(rules, config, 1);
    train(&mut trainer, 0..UPDATES, UPDATES);
    accuracy(&trainer, rules, config)
}

/// Goes through these of all updates.
pub fn train<R: Rules>(trainer: &mut Trainer<Task<R>>, these: std::ops::Range<u32>, all: u32) {
    for update in these {
        let at = At { stage: 0, step: trainer.steps(), share: f64::from(update) / f64::from(all) };
        trainer.update(at).expect("only what the masks allow is done");
    }
}

/// How often the most probable choice is right, of calls that have a right one.
fn accuracy<R: Rules>(trainer: &Trainer<Task<R>>, rules: &R, config: &Config) -> f64 {
    let network = Network::new(&trainer.weights());
    let mut env = Task::new(rules.clone());
    let mut seen = Observation::new(env.spaces());
    let (mut job, mut scratch, mut memory) = (network.job_sum(), network.scratch(), network.memory());
    let mut remembered = vec![0.0; network.remembered()];
    env.reset(Some(99), &mut seen).expect("a task that begins");
    let (mut right, mut judged) = (0, 0);
    while judged < JUDGED {
        let (of_job, of_call) = seen.context.split_at(JOB_WIDTH);
        network.sum_job(of_job.as_array().expect("the job's part"), &mut job);
        let call = of_call.as_array().expect("the call's part");
        let mask = Mask::of_bits(seen.mask);
        let acted = network.act(&job, call, &memory, &mask, &mut scratch, |_, logits| greedy(logits, 0));
        let embedding = scratch.embedding();
        remembered[..embedding.len()].copy_from_slice(embedding);
        let action = Action { choice: acted.choice.0, exploratory: false };
        let stepped = env.step(&action, &mut seen).expect("only what the mask allows");
        judged += usize::from(stepped.info.is_some());
        right += usize::from(stepped.info == Some(true));
        if stepped.terminated || stepped.truncated {
            env.reset(None, &mut seen).expect("the next episode");
            network.forget(&mut memory);
        } else if !config.without.lstm {
            let width = network.shape().embedding;
            remembered[width..].copy_from_slice(&seen.history);
            network.refresh(&remembered, &mut memory, &mut scratch);
        }
    }
    right as f64 / judged as f64
}
