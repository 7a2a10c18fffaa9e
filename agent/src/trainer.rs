//! Recurrent PPO over any environment: gather, judge in hindsight, take steps.
//!
//! One update gathers a rollout with the policy as it is, works out advantages, and goes through the
//! rollout a few times in minibatches of whole sequences. Every sum is taken in an order that does not
//! depend on threads, so that a seed decides every bit.

mod minibatch;

use std::sync::Arc;
use std::time::Instant;

use dynamiccl_env::gym::EnvError;
use dynamiccl_policies::network::{Network, Weights};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::ablate::Ablation;
use crate::adam::Adam;
use crate::average::Average;
use crate::config::{Config, RolloutConfig};
use crate::critic::Values;
use crate::gae::{self, Horizon};
use crate::learn::{Coefficients, Learner, Losses};
use crate::normal::Normaliser;
use crate::params::{Layout, Params};
use crate::progress::{Episodes, Seconds, Update};
use crate::returns::Returns;
use crate::rollout::{Collected, Collector, Rollout, SavedSeat, Tally, Trainable};
use crate::schedule::linear;
use crate::start;
use minibatch::Minibatch;

/// An agent that learns.
#[derive(Debug)]
pub struct Trainer<E: Trainable> {
    config: Config,
    ablation: Ablation,
    learner: Learner,
    threads: usize,
    params: Params,
    average: Average,
    adam: Adam,
    /// What share of the learning rate each parameter gets.
    pace: Vec<f32>,
    contexts: Normaliser,
    histories: Normaliser,
    returns: Returns,
    random: Random,
    collector: Collector<E>,
    steps: u64,
    updates: u64,
}

/// Everything about an agent that learns but its environments' making.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved<P> {
    params: Vec<f32>,
    average: Average,
    adam: Adam,
    contexts: Normaliser,
    histories: Normaliser,
    returns: Returns,
    random: u64,
    seats: Vec<SavedSeat<P>>,
    steps: u64,
    updates: u64,
}

/// What an agent is made of, beside its environments.
#[derive(Debug, Clone)]
pub struct Makings {
    /// How it is trained.
    pub config: Config,
    /// What turns rollouts into gradients.
    pub learner: Learner,
    /// Threads to work on; they change nothing but the time.
    pub threads: usize,
}

/// Where an update stands in its stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// The stage, by number.
    pub stage: usize,
    /// Steps in it so far.
    pub step: u64,
    /// Share of it that is done, 0 to 1.
    pub share: f64,
}

/// What an update has worked out about its rollout.
struct Judged {
    advantages: Vec<f32>,
    returns: Vec<f32>,
    values: Vec<f32>,
    explained: f32,
}

impl<E: Trainable> Trainer<E> {
    /// An agent that knows nothing but NCCL's default. What is usual is learned first, from a look at
    /// environments of all that will come.
    pub fn new(
        makings: Makings,
        seed: u64,
        make: impl Fn() -> E,
        looks: impl Fn() -> E,
    ) -> Result<Self, EnvError> {
        let layout = Arc::clone(makings.learner.layout());
        let Makings { config, learner, threads } = makings;
        let ablation = ablation(&config, &layout)?;
        let [contexts, histories] = usual(looks, seed, &layout, threads)?;
        let mut params = Params::new(Arc::clone(&layout));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        start::start(&mut params, &contexts.scaling(), &histories.scaling(), config.network.table, &mut rng);
        ablation.start(&mut params);
        let makings = Makings { config, learner, threads };
        Trainer::begin(makings, ablation, params, [contexts, histories], seed, make)
    }

    /// An agent that goes on from a policy. What is usual is folded into the policy's weights already, so nothing is
    /// normalised any more: the same network for the same rows. Its critic starts anew.
    pub fn go_on(
        makings: Makings,
        policy: &Weights,
        seed: u64,
        make: impl Fn() -> E,
    ) -> Result<Self, EnvError> {
        let layout = Arc::clone(makings.learner.layout());
        if policy.shape() != layout.shape {
            return Err(EnvError::Backend("the policy has another shape than the configuration".to_owned()));
        }
        let ablation = ablation(&makings.config, &layout)?;
        let mut params = Params::new(layout);
        start::go_on(&mut params, policy, &mut ChaCha8Rng::seed_from_u64(seed));
        let normalisers = [CONTEXT_WIDTH, HISTORY_WIDTH].map(Normaliser::new);
        Trainer::begin(makings, ablation, params, normalisers, seed, make)
    }

    fn begin(
        makings: Makings,
        ablation: Ablation,
        params: Params,
        [contexts, histories]: [Normaliser; 2],
        seed: u64,
        make: impl Fn() -> E,
    ) -> Result<Self, EnvError> {
        let Makings { config, learner, threads } = makings;
        let layout = Arc::clone(params.layout());
        let network = Network::new(&params.folded(&contexts, &histories));
        let collector = Collector::new(make, seed, &network, config.rollout, threads)?;
        Ok(Trainer {
            adam: Adam::new(layout.len()),
            pace: start::pace(&config, &layout),
            average: Average::new(params.values()),
            returns: Returns::default(),
            random: Random::of(seed, 1),
            steps: 0,
            updates: 0,
            config,
            ablation,
            learner,
            threads,
            params,
            contexts,
            histories,
            collector,
        })
    }

    /// An agent as it was saved.
    pub fn restore(makings: Makings, saved: Saved<E::Place>, make: impl Fn() -> E) -> Result<Self, EnvError> {
        let layout = Arc::clone(makings.learner.layout());
        let Makings { config, learner, threads } = makings;
        let ablation = ablation(&config, &layout)?;
        let (found, expected) = (saved.params.len(), layout.len());
        let wrong = || {
            EnvError::Backend(format!(
                "the saved agent has {found} parameters, this build's has {expected}: use the dynamiccl that began the run"
            ))
        };
        let pace = start::pace(&config, &layout);
        let params = Params::from_values(layout, saved.params).ok_or_else(wrong)?;
        let network = Network::new(&params.folded(&saved.contexts, &saved.histories));
        let collector = Collector::restore(make, &saved.seats, &network, config.rollout, threads)?;
        let Saved { average, adam, contexts, histories, returns, random, steps, updates, .. } = saved;
        let random = Random::new(random);
        Ok(Trainer {
            config,
            ablation,
            learner,
            threads,
            params,
            average,
            adam,
            pace,
            contexts,
            histories,
            returns,
            random,
            collector,
            steps,
            updates,
        })
    }

    /// Everything that [`Trainer::restore`] needs to go on with the same bits.
    pub fn save(&self) -> Saved<E::Place> {
        Saved {
            params: self.params.values().to_vec(),
            average: self.average.clone(),
            adam: self.adam.clone(),
            contexts: self.contexts.clone(),
            histories: self.histories.clone(),
            returns: self.returns,
            random: self.random.state(),
            seats: self.collector.save(),
            steps: self.steps,
            updates: self.updates,
        }
    }

    /// Goes on in other environments; what was learned stays.
    pub fn enter(&mut self, seed: u64, make: impl Fn() -> E) -> Result<(), EnvError> {
        let network = self.network();
        self.collector = Collector::new(make, seed, &network, self.config.rollout, self.threads)?;
        Ok(())
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Every number that is moved.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The policy to be judged and left behind: of the mean of the last parameters.
    pub fn weights(&self) -> Weights {
        let mean = Params::from_values(Arc::clone(self.params.layout()), self.average.values().to_vec());
        mean.expect("as many as there are").folded(&self.contexts, &self.histories)
    }

    /// The network that acts.
    fn network(&self) -> Network {
        Network::new(&self.params.folded(&self.contexts, &self.histories))
    }

    /// Gathers a rollout and learns from it.
    pub fn update(&mut self, at: At) -> Result<Update, EnvError> {
        let began = Instant::now();
        let Collected { rollout, tally } = self.collector.collect(&self.network())?;
        let gathered = began.elapsed().as_secs_f64();
        let judged = self.judge(&rollout);
        let rate = linear(self.config.optimiser.rate, at.share);
        let learned = self.learn(&rollout, &judged, at.share, rate)?;
        self.steps += rollout.rows() as u64;
        self.updates += 1;
        let Learned { losses, gradient, epochs } = learned;
        let learn = began.elapsed().as_secs_f64() - gathered;
        // Both are sums over threads; their shares of the wall clock are what people want to know.
        let [env, act] = tally.seconds.map(|s| gathered * s / tally.seconds.iter().sum::<f64>().max(1e-9));
        Ok(Update {
            step: self.steps,
            update: self.updates,
            stage: at.stage,
            stage_step: at.step + rollout.rows() as u64,
            rate,
            losses,
            gradient,
            explained_variance: judged.explained,
            epochs,
            seconds: Seconds { env, act, learn, eval: 0.0 },
            ..watched(&tally)
        })
    }

    /// Values, advantages and what the critic should have said.
    fn judge(&mut self, rollout: &Rollout) -> Judged {
        let said = Values::of(&self.params, rollout, &self.contexts.scaling());
        let values: Vec<f32> = said.rows.iter().map(|&value| self.returns.meant(value)).collect();
        let (ends, lasts) = still_to_come(rollout, said.afters.iter().map(|&x| self.returns.meant(x)));
        let (mut advantages, mut returns) = (vec![0.0; rollout.rows()], vec![0.0; rollout.rows()]);
        let horizon = Horizon { discount: self.config.rollout.discount, trace: self.config.rollout.trace };
        for (environment, &last) in lasts.iter().enumerate() {
            let rows = environment * rollout.steps..(environment + 1) * rollout.steps;
            let (rewards, values) = (&rollout.rewards[rows.clone()], &values[rows.clone()]);
            let sequence = gae::Sequence { rewards, values, ends: &ends[rows.clone()], last };
            gae::advantages(sequence, horizon, &mut advantages[rows.clone()], &mut returns[rows]);
        }
        let explained = explained_variance(&values, &returns);
        self.returns.learn(&returns);
        returns.iter_mut().for_each(|x| *x = self.returns.usual(*x));
        Judged { advantages, returns, values: said.rows, explained }
    }

    fn learn(
        &mut self,
        rollout: &Rollout,
        judged: &Judged,
        share: f64,
        rate: f32,
    ) -> Result<Learned, EnvError> {
        let config = &self.config;
        let coefficients = Coefficients {
            of: config.loss,
            clip: linear(config.loss.clip, share),
            entropy: linear(config.loss.entropy, share),
        };
        let (contexts, histories) = (self.contexts.scaling(), self.histories.scaling());
        let mut learned = Learned::default();
        'epochs: for epoch in 0..config.optimiser.epochs {
            let mut losses = Losses::default();
            let batches = minibatch::shuffled(rollout, config.optimiser.minibatches, &mut self.random);
            for environments in &batches {
                let batch = Minibatch::new(rollout, judged, environments, [&contexts, &histories]);
                let mut sum =
                    batch.gradient(&self.learner, &self.params, &coefficients, config, self.threads);
                self.ablation.gradient(self.params.layout(), &mut sum.gradient);
                let diverged =
                    config.optimiser.divergence > 0.0 && sum.losses.divergence > config.optimiser.divergence;
                losses.add(&sum.losses, 1.0 / batches.len() as f32);
                if diverged {
                    learned.losses = sum.losses;
                    break 'epochs;
                }
                let length = crate::adam::clip(&mut sum.gradient, config.optimiser.longest);
                if !length.is_finite() {
                    return Err(EnvError::Backend(no_number(self.steps)));
                }
                learned.gradient = learned.gradient.max(length);
                self.adam.step(self.params.values_mut(), &sum.gradient, rate, &self.pace);
                self.average.take_in(self.params.values());
            }
            learned.epochs = epoch + 1;
            learned.losses = losses;
        }
        Ok(learned)
    }
}

/// Where an episode ends with a row, what was still to come; then the same after the last row of each sequence. `values`
/// are those of what was seen after calls, in their order.
fn still_to_come(rollout: &Rollout, values: impl Iterator<Item = f32>) -> (Vec<Option<f32>>, Vec<f32>) {
    let mut ends: Vec<Option<f32>> = rollout.terminated.iter().map(|&done| done.then_some(0.0)).collect();
    let mut lasts = vec![0.0; rollout.environments];
    for (after, value) in rollout.afters.iter().zip(values) {
        if rollout.truncated[after.row] {
            // An episode that is cut short with the last row is seen before the one that begins after it.
            ends[after.row].get_or_insert(value);
        }
        lasts[after.row / rollout.steps] = value;
    }
    (ends, lasts)
}

/// Why a run ends rather than go on with parameters that mean nothing.
fn no_number(steps: u64) -> String {
    format!(
        "after {steps} steps the gradient is no number; lower optimiser.rate with --set (and --override, where a run is resumed)"
    )
}

/// What an update came to.
#[derive(Debug, Default)]
struct Learned {
    losses: Losses,
    gradient: f32,
    epochs: usize,
}

/// What is usual in a look at many environments, in which everything is tried: contexts, then history rows.
/// It stays as it is for the whole run, so that a network means the same all along.
fn usual<E: Trainable>(
    make: impl Fn() -> E,
    seed: u64,
    layout: &Layout,
    threads: usize,
) -> Result<[Normaliser; 2], EnvError> {
    let network = Network::new(&Weights::untrained(layout.shape));
    let look =
        RolloutConfig { environments: 512, steps: 24, held: 1.0, hindsight: 0.0, ..RolloutConfig::default() };
    let mut collector = Collector::new(make, !seed, &network, look, threads)?;
    let rollout = collector.collect(&network)?.rollout;
    let [mut contexts, mut histories] = [CONTEXT_WIDTH, HISTORY_WIDTH].map(Normaliser::new);
    // Not the first of each sequence: it stands for a call before the first.
    let seen = |at| rollout.contexts_of(at)[CONTEXT_WIDTH..].chunks_exact(CONTEXT_WIDTH);
    contexts.learn((0..rollout.environments).flat_map(seen));
    let told = rollout.histories.chunks_exact(HISTORY_WIDTH).zip(&rollout.begins);
    histories.learn(told.filter(|(_, begins)| !**begins).map(|(history, _)| history));
    Ok([contexts, histories])
}

fn ablation(config: &Config, layout: &Layout) -> Result<Ablation, EnvError> {
    let unknown = |name| {
        EnvError::Backend(format!(
            "without.features: no feature of a context is called {name}; docs/state.md lists them"
        ))
    };
    Ablation::new(&config.without, layout).map_err(unknown)
}

/// The figures of an update that a rollout gives by itself.
fn watched(tally: &Tally) -> Update {
    let decided = tally.decided.max(1) as f64;
    let (count, sum, length) = tally.episodes;
    let episodes = (count > 0).then(|| Episodes {
        count: count as usize,
        mean_return: (sum / count as f64) as f32,
        mean_length: (length as f64 / count as f64) as f32,
    });
    Update {
        step: 0,
        update: 0,
        stage: 0,
        stage_step: 0,
        rate: 0.0,
        losses: Losses::default(),
        gradient: 0.0,
        explained_variance: 0.0,
        epochs: 0,
        episodes,
        terms: tally.terms.map(|sum| (sum / decided) as f32),
        gain: (tally.gain / tally.gained.max(1) as f64) as f32,
        decided: (tally.decided as f64 / tally.calls.max(1) as f64) as f32,
        choices: tally.choices.clone(),
        gates: tally.gates,
        seconds: Seconds::default(),
    }
}

/// 1 − variance of the error ÷ variance of the returns; 0 where these do not vary.
fn explained_variance(values: &[f32], returns: &[f32]) -> f32 {
    let variance = |numbers: &mut dyn Iterator<Item = f64>| {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for x in numbers {
            count += 1.0;
            let off = x - mean;
            mean += off / count;
            squares += off * (x - mean);
        }
        squares
    };
    let of_returns = variance(&mut returns.iter().map(|&x| f64::from(x)));
    let errors = &mut values.iter().zip(returns).map(|(&value, &x)| f64::from(x) - f64::from(value));
    if of_returns > 0.0 { (1.0 - variance(errors) / of_returns) as f32 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::After;

    #[test]
    fn what_is_still_to_come_is_nothing_after_a_job_and_a_value_after_a_cut() {
        let after = |row| After { row, context: Box::default(), privileged: Box::default() };
        let [no, yes] = [false, true];
        let rollout = Rollout {
            environments: 2,
            steps: 3,
            terminated: vec![no, yes, yes, no, no, no],
            truncated: vec![no, no, yes, yes, no, yes],
            // A job that ended has nothing to come, whatever is seen after it. The last row of the second sequence ends an
            // episode: its own end comes first, the next beginning after it.
            afters: [2, 3, 5, 5].map(after).to_vec(),
            ..Rollout::default()
        };
        let (ends, lasts) = still_to_come(&rollout, [1.0, 2.0, 3.0, 4.0].into_iter());
        assert_eq!(ends, [None, Some(0.0), Some(0.0), Some(2.0), None, Some(3.0)]);
        assert_eq!(lasts, [1.0, 4.0]);
    }
}
