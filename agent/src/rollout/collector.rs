//! All environments of a run, and a rollout from each of them.

use dynamiccl_env::gym::{Env, EnvError, seed_of};
use dynamiccl_env::threads::each;
use dynamiccl_policies::network::Network;

use super::buffer::Rollout;
use super::seat::{SavedSeat, Seat};
use super::tally::Tally;
use super::trainable::Trainable;
use crate::config::RolloutConfig;

/// All environments of a run.
#[derive(Debug)]
pub struct Collector<E: Env> {
    seats: Vec<Seat<E>>,
    config: RolloutConfig,
    threads: usize,
}

/// A rollout, and sums over it.
#[derive(Debug)]
pub struct Collected {
    /// The rollout.
    pub rollout: Rollout,
    /// Sums over it.
    pub tally: Tally,
}

impl<E: Trainable> Collector<E> {
    /// Environments that begin, each with a seed of its own.
    pub fn new(
        make: impl Fn() -> E,
        seed: u64,
        network: &Network,
        config: RolloutConfig,
        threads: usize,
    ) -> Result<Self, EnvError> {
        // As many as the share says among the first few as among all.
        let holding = |seats: usize| (seats as f32 * config.held) as usize;
        let holds = |at| holding(at + 1) > holding(at);
        let seat = |at| Seat::new(make(), seed_of(seed, at), holds(at), network, &config);
        let seats = (0..config.environments).map(seat).collect::<Result<_, _>>()?;
        Ok(Collector { seats, config, threads })
    }

    /// Environments as they were saved.
    pub fn restore(
        make: impl Fn() -> E,
        saved: &[SavedSeat<E::Place>],
        network: &Network,
        config: RolloutConfig,
        threads: usize,
    ) -> Result<Self, EnvError> {
        let seats = saved.iter().map(|saved| Seat::restore(make(), saved, network));
        Ok(Collector { seats: seats.collect::<Result<_, _>>()?, config, threads })
    }

    /// The environments as they are written down.
    pub fn save(&self) -> Vec<SavedSeat<E::Place>> {
        self.seats.iter().map(Seat::save).collect()
    }

    /// One sequence from each environment.
    pub fn collect(&mut self, network: &Network) -> Result<Collected, EnvError> {
        let config = &self.config;
        let parts = each(self.threads, &mut self.seats, |_, seat| {
            let mut part = Rollout::default();
            seat.fill(network, config, &mut part).map(|tally| (part, tally))
        });
        let (mut rollout, mut tally) = (Rollout::default(), Tally::default());
        for part in parts {
            let (part, of_part) = part?;
            rollout.append(part);
            tally.add(&of_part);
        }
        rollout.steps = config.steps;
        Ok(Collected { rollout, tally })
    }
}
