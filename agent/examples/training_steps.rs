//! Steps per second of training in the simulator on one thread, with a rollout of any shape: what
//! `scripts/bench/recurrent_ppo.py` puts beside RecurrentPPO.
//!
//!     training_steps ENVIRONMENTS STEPS EPOCHS MINIBATCHES CELLS UPDATES whole|ppo
//!
//! Layers beside the LSTM have 64 numbers, as the other's. Everything else is as in a run of stage 1; `ppo` leaves out what
//! only a simulator allows, lessons in hindsight. No epoch is left out, however far the policy has moved. Seconds are those on
//! a core; the first update warms up and does not count.

mod clock;

use std::error::Error;
use std::sync::Arc;

use dynamiccl_agent::Config;
use dynamiccl_agent::config::NetworkConfig;
use dynamiccl_agent::learn::Device;
use dynamiccl_agent::subject::Knobs;
use dynamiccl_agent::training::{Event, Setup, Training};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;

/// Width of all layers but the LSTM, as RecurrentPPO has it.
const WIDTH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let lessons = words.pop().filter(|word| word == "whole" || word == "ppo").map(|word| word == "whole");
    let sizes: Vec<usize> = words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (Some(lessons), [environments, steps, epochs, minibatches, cells, updates]) = (lessons, &sizes[..])
    else {
        eprintln!("training_steps ENVIRONMENTS STEPS EPOCHS MINIBATCHES CELLS UPDATES whole|ppo");
        std::process::exit(2);
    };
    let mut config = Config::default();
    (config.network.memory, config.network.table) = (*cells, false);
    let NetworkConfig { embedding, expert, resource, critic, .. } = &mut config.network;
    for width in [embedding, expert, resource, critic] {
        *width = WIDTH;
    }
    (config.rollout.environments, config.rollout.steps) = (*environments, *steps);
    (config.optimiser.epochs, config.optimiser.minibatches) = (*epochs, *minibatches);
    if !lessons {
        // Every call is drawn and learned from by itself alone.
        (config.rollout.hindsight, config.rollout.held, config.rollout.greedy) = (0.0, 0.0, 0.0);
    }
    (config.optimiser.shards, config.optimiser.divergence) = (1, 0.0);
    config.evaluation.every = u64::MAX;
    let mut training = Training::new(Setup {
        subject: Knobs {
            curriculum: Curriculum::load("stage1")?,
            constants: Arc::new(ConstantsFile::full()),
            schedules: None,
        },
        config,
        seed: 1,
        threads: 1,
        device: Device::Flex,
    })?;
    let mut wall = [0.0; 3];
    training.step()?;
    let begun = clock::seconds();
    for _ in 0..*updates {
        let Event::Updated(update) = training.step()? else { return Err("the stage has ended".into()) };
        assert_eq!(update.epochs, *epochs, "an epoch was left out");
        let of = [update.seconds.env, update.seconds.act, update.seconds.learn];
        wall.iter_mut().zip(of).for_each(|(sum, x)| *sum += x);
    }
    let taken = clock::seconds() - begun;
    println!(
        "{}",
        serde_json::json!({
            "steps_per_second": (updates * environments * steps) as f64 / taken,
            "wall_seconds": { "env": wall[0], "act": wall[1], "learn": wall[2] },
        })
    );
    Ok(())
}
