//! A policy fitted to recorded sweeps or to real ranks: the trainer goes on from it with their calls, and with simulated jobs
//! beside them so that it keeps what it knew of other machines.
//!
//! A sweep knows what every choice would have taken, so hindsight does most of it, and little is needed: seconds, where a
//! curriculum takes hours. Nothing here writes files or prints.

mod ground;
mod judged;
mod seats;

use std::sync::Arc;

use dynamiccl_env::curriculum::Stage;
use dynamiccl_env::gym::{Env, EnvError};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::{Swept, SweptError};
use dynamiccl_policies::network::Weights;
use thiserror::Error;

use crate::config::{Config, LossConfig, NetworkConfig, OptimiserConfig, RolloutConfig};
use crate::learn::{Device, Learner, MissingDevice};
use crate::memory_table;
use crate::params::Layout;
use crate::progress::Update;
use crate::trainer::{At, Makings, Trainer};
pub use ground::Ground;
use ground::Lessons;
pub use judged::Judged;
use seats::Seats;

/// Updates between two judgements.
const JUDGED_EVERY: u64 = 4;

/// What a fit is made of.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The policy that it starts from.
    pub policy: Weights,
    /// Spreads of its expected gain that this must exceed before the policy departs from NCCL's choice.
    pub margin: f32,
    /// What it is fitted to.
    pub ground: Ground,
    /// Doubts of every measured time that a gain must exceed; 0 takes a sweep at its word.
    pub doubts: f64,
    /// Where the simulated jobs come from.
    pub stage: Arc<Stage>,
    /// Share of the environments that have them, 0 to 1.
    pub simulated: f64,
    /// How it is trained.
    pub config: Config,
    /// Steps after which it ends.
    pub steps: u64,
    /// Share of what there is to win on every sweep with which it ends before.
    pub enough: f64,
    /// The seed of everything random.
    pub seed: u64,
    /// Threads to work on; they change nothing but the time.
    pub threads: usize,
    /// Constants of the model.
    pub constants: Arc<ConstantsFile>,
}

/// Why a policy cannot be fitted.
#[derive(Debug, Error)]
pub enum FitError {
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A sweep failed.
    #[error(transparent)]
    Swept(#[from] SweptError),
    /// The device is not here.
    #[error(transparent)]
    Device(#[from] MissingDevice),
    /// Its memory would be taken for one that was trained.
    #[error(
        "the policy begins with the memory of a recorded job (export --history), which fitting would lose: fit the policy that \
         it was made from, then put the history into what comes of it"
    )]
    Remembers,
}

/// A policy that is being fitted.
#[derive(Debug)]
pub struct Fit {
    setup: Setup,
    lessons: Lessons,
    trainer: Trainer<SimEnv>,
    updates: u64,
    before: Judged,
    best: Judged,
    done: bool,
}

impl Fit {
    /// A fit that begins; the policy that it starts from is judged first.
    pub fn new(mut setup: Setup) -> Result<Self, FitError> {
        if setup.policy.remembers_a_job() {
            return Err(FitError::Remembers);
        }
        let shape = setup.policy.shape();
        setup.config.network = NetworkConfig {
            embedding: shape.embedding,
            memory: shape.memory,
            expert: shape.expert,
            resource: shape.resource,
            table: setup.config.network.table && memory_table::fits(&shape),
            ..setup.config.network
        };
        let lessons = setup.ground.lessons(setup.doubts)?;
        let privileged = Seats::new(&setup, &lessons.sure).make().spaces().privileged_width();
        let layout = Layout::new(&setup.config.network, privileged);
        let learner = Learner::new(Arc::new(layout), Device::default())?;
        let makings = Makings { config: setup.config.clone(), learner, threads: setup.threads };
        let seats = Seats::new(&setup, &lessons.sure);
        let trainer = Trainer::go_on(makings, &setup.policy, setup.seed, || seats.make())?;
        let before = Judged::new(&setup, &lessons, setup.policy.clone(), 0)?;
        let (best, live) = (before.clone(), setup.ground.is_live());
        let done = !live && before.is_enough(setup.enough);
        Ok(Fit { setup, lessons, trainer, updates: 0, before, best, done })
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.trainer.steps()
    }

    /// Whether it is good enough, or has had its steps.
    pub fn done(&self) -> bool {
        self.done || self.steps() >= self.setup.steps
    }

    /// The policy that it started from.
    pub fn before(&self) -> &Judged {
        &self.before
    }

    /// The best so far.
    pub fn best(&self) -> &Judged {
        &self.best
    }

    /// The policy as it is now.
    pub fn weights(&self) -> Weights {
        self.trainer.weights()
    }

    /// What the policy that it started from and the best so far make of other sweeps.
    pub fn elsewhere(&self, sweeps: &[Arc<Swept>]) -> Result<[Judged; 2], FitError> {
        let margin = self.setup.margin;
        Ok([self.before.on(sweeps, margin)?, self.best.on(sweeps, margin)?])
    }

    /// Gathers a rollout and learns from it; now and then what came of it is judged.
    pub fn update(&mut self) -> Result<Update, FitError> {
        let step = self.steps();
        let share = step as f64 / self.setup.steps.max(1) as f64;
        let update = self.trainer.update(At { stage: 0, step, share })?;
        self.updates += 1;
        if self.updates.is_multiple_of(JUDGED_EVERY) {
            self.judge()?;
        }
        Ok(update)
    }

    /// Judges the policy as it is now; the last one before the end is not to be missed.
    pub fn judge(&mut self) -> Result<(), FitError> {
        if self.setup.ground.is_live() {
            // All by the same measurements, which were fewer before.
            self.lessons = self.setup.ground.lessons(self.setup.doubts)?;
            for judged in [&mut self.before, &mut self.best] {
                *judged = Judged::new(&self.setup, &self.lessons, judged.weights.clone(), judged.steps)?;
            }
            // What was the best by fewer may now be worse than what it started from.
            if self.before.score() > self.best.score() {
                self.best = self.before.clone();
            }
        }
        let judged = Judged::new(&self.setup, &self.lessons, self.weights(), self.steps())?;
        if judged.score() > self.best.score() {
            self.best = judged;
        }
        // Of real ranks the best is not known before the budget is spent.
        self.done = !self.setup.ground.is_live() && self.best.is_enough(self.setup.enough);
        Ok(())
    }
}

/// How a policy is fitted where nobody says otherwise: small steps often, for there is little to see.
pub fn usual() -> Config {
    Config {
        rollout: RolloutConfig { environments: 64, steps: 16, calls: 128, ..RolloutConfig::default() },
        loss: LossConfig { entropy: [0.005, 0.001], temperature: 0.02, ..LossConfig::default() },
        optimiser: OptimiserConfig { rate: [2e-3, 2e-4], divergence: 0.0, ..OptimiserConfig::default() },
        ..Config::default()
    }
}

/// The same on real ranks, where a call costs time: fewer at once.
pub fn usual_live() -> Config {
    let usual = usual();
    Config { rollout: RolloutConfig { environments: 16, steps: 16, calls: 64, ..usual.rollout }, ..usual }
}
