//! Many environments side by side, in a fixed order whatever the number of threads.
//!
//! Each environment has its own random numbers, so how they are spread over threads changes nothing but
//! the time. A shard is what a thread works on at once: whoever acts can act and step there for many steps
//! without meeting the others.

use std::sync::{Mutex, PoisonError};

use crate::gym::{Action, Env, EnvError, Observation, Transition};
use crate::threads::together;

/// Shards for each thread: jobs cost more or less, so a thread that is done early takes another.
const SHARDS: usize = 8;

/// Environments side by side.
#[derive(Debug)]
pub struct VecEnv<E: Env> {
    slots: Vec<Slot<E>>,
    threads: usize,
}

/// One environment with the room for what it shows.
#[derive(Debug)]
pub struct Slot<E: Env> {
    env: E,
    observation: Observation,
}

/// A step of one of many environments.
#[derive(Debug, Clone, PartialEq)]
pub struct VecStep<I> {
    /// What the step leads to.
    pub transition: Transition<I>,
    /// What the first info of the next episode says, where this step ended one.
    pub begun: Option<I>,
}

impl<E: Env> Slot<E> {
    /// What is seen now.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// The environment.
    pub fn env(&mut self) -> &mut E {
        &mut self.env
    }

    /// Starts the environment from a seed.
    pub fn reset(&mut self, seed: u64) -> Result<E::Info, EnvError> {
        self.env.reset(Some(seed), &mut self.observation)
    }

    /// Acts, and begins the next episode at once where this one ends.
    pub fn step(&mut self, action: &Action) -> Result<VecStep<E::Info>, EnvError> {
        let transition = self.env.step(action, &mut self.observation)?;
        if !transition.terminated && !transition.truncated {
            return Ok(VecStep { transition, begun: None });
        }
        let begun = Some(self.env.reset(None, &mut self.observation)?);
        Ok(VecStep { transition, begun })
    }
}

impl<E: Env> VecEnv<E> {
    /// These environments, on this many threads.
    pub fn new(envs: impl IntoIterator<Item = E>, threads: usize) -> Self {
        let slot = |env: E| {
            let observation = Observation::new(env.spaces());
            Slot { observation, env }
        };
        VecEnv { slots: envs.into_iter().map(slot).collect(), threads: threads.max(1) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// One of them.
    pub fn slot(&self, index: usize) -> &Slot<E> {
        &self.slots[index]
    }

    /// Starts all of them, each from a seed of its own.
    pub fn reset(&mut self, seed: u64) -> Result<Vec<E::Info>, EnvError> {
        let started = self.slots.iter_mut().enumerate();
        started.map(|(index, slot)| slot.reset(seed_of(seed, index))).collect()
    }

    /// Acts once in each.
    pub fn step(&mut self, actions: &[Action]) -> Result<Vec<VecStep<E::Info>>, EnvError>
    where
        E::Info: Send,
    {
        if actions.len() != self.len() {
            let why = format!("{} actions for {} environments; give one for each", actions.len(), self.len());
            return Err(EnvError::Backend(why));
        }
        let shards = self.in_shards(|first, slots| {
            let stepped = slots.iter_mut().zip(&actions[first..]).map(|(slot, action)| slot.step(action));
            stepped.collect::<Result<Vec<_>, _>>()
        });
        shards.into_iter().collect::<Result<Vec<_>, _>>().map(|shards| shards.concat())
    }

    /// Lets threads work on runs of environments, each beginning with number `first`; a thread that is done
    /// takes the next run. What they return is in the order of the environments.
    pub fn in_shards<R: Send>(&mut self, work: impl Fn(usize, &mut [Slot<E>]) -> R + Sync) -> Vec<R> {
        let size = self.slots.len().div_ceil(self.threads * SHARDS).max(1);
        if self.threads == 1 {
            let shards = self.slots.chunks_mut(size).enumerate();
            return shards.map(|(at, slots)| work(at * size, slots)).collect();
        }
        let left = Mutex::new(self.slots.chunks_mut(size).enumerate());
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let take = || {
            let mut done = Vec::new();
            while let Some((at, slots)) = next() {
                done.push((at, work(at * size, slots)));
            }
            done
        };
        together(self.threads, take)
    }
}

/// A seed for one of many, unlike that of any other (splitmix64 over both numbers).
pub fn seed_of(seed: u64, index: usize) -> u64 {
    let mut x = seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
