//! One environment and whoever acts in it: what is remembered, when memory is refreshed, what was done
//! since the episode began.
//!
//! An episode is saved as where it began and what was done in it: the same actions lead to the same state,
//! bit by bit, and no environment has to be taken apart.

use std::time::Instant;

use dynamiccl_env::gym::{Action, Env, EnvError, Observation};
use dynamiccl_policies::network::{Estimates, JobSum, Memory, Network, Scratch, Surprise};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::{CALL_WIDTH, CONTEXT_WIDTH, JOB_WIDTH};
use dynamiccl_spec::{Choice, Head, Mask, Path};
use serde::{Deserialize, Serialize};

use super::CHOICES;
use super::buffer::{After, Rollout, Source, Truth};
use super::sample::Sampler;
use super::tally::Tally;
use super::trainable::Trainable;
use super::tried::Tried;
use crate::config::RolloutConfig;
use crate::wide::wide;

/// One environment and whoever acts in it.
#[derive(Debug)]
pub(super) struct Seat<E: Env> {
    env: E,
    seen: Observation,
    random: Random,
    memory: Memory,
    /// What decisions see of the memory.
    held: Vec<f32>,
    /// Whether that is what every job begins with.
    fresh: bool,
    /// Whether decisions never see the history.
    holds: bool,
    /// Whether the most probable is chosen in this episode, as a deployed policy does.
    greedy: bool,
    /// Most calls of this episode.
    most: usize,
    /// Calls between two refreshes; none where decisions never see the history.
    refresh: Option<u32>,
    /// Calls since the last one.
    unseen: u32,
    /// Whether the next call is the first of its episode.
    begins: bool,
    /// The context of the call before.
    before: Vec<f32>,
    /// Actions of the running episode.
    done: Vec<Action>,
    /// Sum of its rewards.
    sum: f64,
    job: JobSum,
    of_job: Vec<f32>,
    scratch: Scratch,
    /// What the LSTM will see of the call before: its embedding and the history row after it.
    remembered: Vec<f32>,
    /// Whether the embedding is there already.
    embedded: bool,
    /// Whether anything was measured since the job began, or memory reaches decisions all the same.
    told: bool,
    /// What the times of the call before were expected to be.
    expected: Estimates,
    surprise: Surprise,
    tried: Tried,
}

/// A seat as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedSeat<P> {
    place: P,
    done: Vec<([u8; HEADS], bool)>,
    random: u64,
    hidden: Vec<f32>,
    cell: Vec<f32>,
    held: Vec<f32>,
    fresh: bool,
    holds: bool,
    greedy: bool,
    most: usize,
    expected: Vec<f32>,
    tried: Tried,
    refresh: Option<u32>,
    unseen: u32,
}

impl<E: Trainable> Seat<E> {
    /// Takes a seat in an environment; whether decisions there never see the history.
    pub fn new(
        mut env: E,
        seed: u64,
        holds: bool,
        network: &Network,
        config: &RolloutConfig,
    ) -> Result<Self, EnvError> {
        let mut seen = Observation::new(env.spaces());
        env.reset(Some(seed), &mut seen)?;
        let mut seat = Seat { holds, ..Seat::around(env, seen, Random::of(seed, 0), network) };
        seat.begin(network, config);
        Ok(seat)
    }

    fn around(env: E, seen: Observation, random: Random, network: &Network) -> Self {
        let (memory, told) = (network.memory(), env.always_remembers());
        Seat {
            env,
            seen,
            random,
            held: memory.hidden().to_vec(),
            memory,
            fresh: true,
            holds: false,
            greedy: false,
            most: usize::MAX,
            refresh: None,
            unseen: 0,
            begins: true,
            before: vec![0.0; CONTEXT_WIDTH],
            done: Vec::new(),
            sum: 0.0,
            job: network.job_sum(),
            of_job: Vec::new(),
            scratch: network.scratch(),
            remembered: vec![0.0; network.remembered()],
            embedded: false,
            told,
            expected: Estimates::default(),
            surprise: Surprise::default(),
            tried: Tried::default(),
        }
    }

    /// The seat as it is written down.
    pub fn save(&self) -> SavedSeat<E::Place> {
        SavedSeat {
            place: self.env.place(),
            done: self.done.iter().map(|action| (action.choice, action.exploratory)).collect(),
            random: self.random.state(),
            hidden: self.memory.hidden().to_vec(),
            cell: self.memory.cell().to_vec(),
            held: self.held.clone(),
            fresh: self.fresh,
            holds: self.holds,
            greedy: self.greedy,
            most: self.most,
            expected: self.expected.0.to_vec(),
            tried: self.tried.clone(),
            refresh: self.refresh,
            unseen: self.unseen,
        }
    }

    /// Takes the seat again: the episode is begun once more and gone through up to the call that was next.
    pub fn restore(mut env: E, saved: &SavedSeat<E::Place>, network: &Network) -> Result<Self, EnvError> {
        let mut seen = Observation::new(env.spaces());
        env.rejoin(&saved.place, &mut seen)?;
        let mut seat = Seat::around(env, seen, Random::new(saved.random), network);
        for &(choice, exploratory) in &saved.done {
            seat.before.copy_from_slice(&seat.seen.context);
            let action = Action { choice, exploratory };
            seat.sum += seat.env.step(&action, &mut seat.seen)?.reward;
            seat.told |= seat.surprise.measured(&seat.seen.history);
            seat.done.push(action);
        }
        seat.tried = saved.tried.clone();
        let wrong = |_| EnvError::Backend("a saved seat has estimates of another number of pairs".to_owned());
        seat.expected = Estimates(saved.expected.as_slice().try_into().map_err(wrong)?);
        if saved.refresh.is_some() {
            seat.surprise.put(&seat.expected, &mut seat.seen.history);
        }
        network.recall(&saved.hidden, &saved.cell, &saved.held, &mut seat.memory);
        seat.held.copy_from_slice(&saved.held);
        seat.begins = saved.done.is_empty();
        (seat.fresh, seat.holds, seat.greedy) = (saved.fresh, saved.holds, saved.greedy);
        (seat.most, seat.refresh, seat.unseen) = (saved.most, saved.refresh, saved.unseen);
        Ok(seat)
    }

    /// Draws how the memory is used in the episode that begins.
    fn begin(&mut self, network: &Network, config: &RolloutConfig) {
        network.forget(&mut self.memory);
        self.hold();
        (self.fresh, self.begins, self.unseen, self.sum) = (true, true, 0, 0.0);
        self.told = self.env.always_remembers();
        self.done.clear();
        self.tried.clear();
        self.greedy = self.random.uniform() < f64::from(config.greedy) && !self.holds;
        let every = self.log_uniform([1.0, f64::from(config.refresh) + 1.0]);
        self.refresh = (!self.holds).then(|| (every as u32).clamp(1, config.refresh.max(1)));
        let most = self.log_uniform([config.calls as f64 / 8.0, config.calls as f64]);
        self.most = if self.holds { config.lesson } else { most as usize };
    }

    fn log_uniform(&mut self, [least, most]: [f64; 2]) -> f64 {
        let [least, most] = [least, most].map(f64::log2);
        (least + (most - least) * self.random.uniform()).exp2()
    }

    fn hold(&mut self) {
        self.held.copy_from_slice(self.memory.hidden());
    }

    /// Fills one sequence; the network may be another than last time.
    pub fn fill(
        &mut self,
        network: &Network,
        config: &RolloutConfig,
        into: &mut Rollout,
    ) -> Result<Tally, EnvError> {
        self.adopt(network, into);
        let (mut tally, mut source) = (Tally::default(), Source::Held);
        let began = Instant::now();
        let mut in_env = 0.0;
        for call in 0..config.steps {
            if self.fresh {
                source = Source::Initial;
            }
            if self.take_in(network) {
                source = Source::After(call as u16);
            }
            let (action, ln_probability) = self.decide(network);
            self.observe(into, source, &action, ln_probability);
            let stepping = Instant::now();
            self.step(network, config, &action, into, &mut tally)?;
            in_env += stepping.elapsed().as_secs_f64();
        }
        into.afters.push(self.after(into.rewards.len() - 1));
        tally.seconds = [in_env, began.elapsed().as_secs_f64() - in_env];
        Ok(tally)
    }

    /// Works out anew what depends on the network, and notes the state that the sequence starts from.
    fn adopt(&mut self, network: &Network, into: &mut Rollout) {
        if self.begins {
            network.forget(&mut self.memory);
        }
        if self.fresh {
            self.held.copy_from_slice(network.memory().hidden());
        }
        let (hidden, cell) = (self.memory.hidden().to_vec(), self.memory.cell().to_vec());
        network.recall(&hidden, &cell, &self.held, &mut self.memory);
        self.of_job.clear();
        self.embedded = false;
        for state in [&hidden, &cell, &self.held] {
            into.states.extend_from_slice(state);
        }
        into.contexts.extend_from_slice(&self.before);
    }

    /// Lets the LSTM see the call before; whether decisions see more than before from now on.
    fn take_in(&mut self, network: &Network) -> bool {
        let Some(every) = self.refresh.filter(|_| !self.begins) else { return false };
        let (of_call, of_history) = self.remembered.split_at_mut(network.shape().embedding);
        if !self.embedded {
            let (job, call) = split(&self.before);
            network.sum_job(job, &mut self.job);
            wide!(of_call.copy_from_slice(network.embed(&self.job, call, &mut self.scratch)));
            self.of_job.clear();
        }
        of_history.copy_from_slice(&self.seen.history);
        let measured = self.surprise.measured(&self.seen.history);
        self.told |= measured;
        if let Some(last) = self.done.last().filter(|last| measured && by_nccl(last)) {
            self.tried.add(&self.before, last.choice[Head::Pair as usize]);
        }
        wide!(network.steps(&self.remembered, &mut self.memory, &mut self.scratch));
        self.unseen += 1;
        // A job that is told nothing decides by what it knew when it began, as a tuner does.
        if self.unseen < every || !self.told {
            return false;
        }
        network.hold(&mut self.memory);
        self.hold();
        self.tried.refresh();
        (self.unseen, self.fresh) = (0, false);
        true
    }

    fn decide(&mut self, network: &Network) -> (Action, f32) {
        let (job, call) = split(&self.seen.context);
        if self.of_job != job {
            network.sum_job(job, &mut self.job);
            self.of_job.clear();
            self.of_job.extend_from_slice(job);
        }
        self.embedded = self.refresh.is_some();
        if self.embedded {
            self.expected = wide!(network.expect(&self.job, call, &mut self.scratch));
            self.remembered[..network.shape().embedding].copy_from_slice(self.scratch.embedding());
        }
        if self.seen.decides {
            return self.draw(network);
        }
        let choice = self.seen.mask.map(|bits| bits.trailing_zeros().min(31) as u8);
        (Action { choice, exploratory: false }, 0.0)
    }

    /// Draws what to do, and says with which probability (ln).
    fn draw(&mut self, network: &Network) -> (Action, f32) {
        let (_, call) = split(&self.seen.context);
        let (random, greedy) = (&mut self.random, self.greedy);
        let mut sampler = Sampler { random, greedy, ln_probability: 0.0, exploratory: false };
        let mask = Mask::of_bits(self.seen.mask);
        let draw = |_, logits: &[f32]| sampler.draw(logits);
        let acted = wide!(network.act(&self.job, call, &self.memory, &mask, &mut self.scratch, draw));
        (Action { choice: acted.choice.0, exploratory: sampler.exploratory }, sampler.ln_probability)
    }

    /// Writes down what was seen and decided.
    fn observe(&mut self, into: &mut Rollout, source: Source, action: &Action, ln_probability: f32) {
        into.contexts.extend_from_slice(&self.seen.context);
        into.histories.extend_from_slice(&self.seen.history);
        into.privileged.extend_from_slice(&self.seen.privileged);
        into.masks.push(self.seen.mask);
        into.decides.push(self.seen.decides);
        into.choices.push(action.choice);
        into.drawn.push(self.seen.decides && !self.greedy);
        into.ln_probabilities.push(ln_probability);
        into.begins.push(self.begins);
        into.sources.push(source);
        into.seen.extend_from_slice(&self.held);
    }

    /// Acts, writes down what came of it, and begins the next episode where this one has ended.
    fn step(
        &mut self,
        network: &Network,
        config: &RolloutConfig,
        action: &Action,
        into: &mut Rollout,
        tally: &mut Tally,
    ) -> Result<(), EnvError> {
        let row = into.rewards.len();
        let share = f64::from(config.hindsight);
        let asked = share > 0.0 && (self.holds || self.random.uniform() < share);
        if self.seen.decides && asked {
            let mut gains = vec![0.0; CHOICES].into_boxed_slice();
            if let Some(own) = self.env.gains(&Choice(action.choice), &mut gains) {
                let tried = if self.holds { u32::MAX } else { self.tried.pairs(&self.seen.context) };
                let schedule = self.env.schedule_gain().unwrap_or(f32::NAN);
                into.truths.push(Truth { row, gains, schedule, own, tried });
            }
        }
        self.before.copy_from_slice(&self.seen.context);
        let decides = self.seen.decides;
        let moved = self.env.step(action, &mut self.seen)?;
        if self.refresh.is_some() {
            self.surprise.put(&self.expected, &mut self.seen.history);
        }
        let outcome = E::outcome(&moved.info);
        into.rewards.push(moved.reward as f32);
        into.terminated.push(moved.terminated);
        let truncated = moved.truncated || self.done.len() + 1 >= self.most;
        into.truncated.push(truncated);
        into.ln_times.push(outcome.ln_time.unwrap_or(f32::NAN));
        // What other threads have won, which an earlier call has chosen, says nothing of these knobs.
        let threads = action.choice[Head::Threads as usize];
        let gain = outcome.gain.filter(|_| outcome.threads.is_none_or(|ran| ran == threads));
        into.gains.push(gain.unwrap_or(f32::NAN));
        tally.call(decides, &action.choice, &outcome);
        self.sum += moved.reward;
        self.begins = false;
        self.done.push(*action);
        if moved.terminated || truncated {
            tally.episode(self.sum, self.done.len() as u64);
            if !moved.terminated {
                into.afters.push(self.after(row));
            }
            self.env.reset(None, &mut self.seen)?;
            self.begin(network, config);
        }
        Ok(())
    }

    fn after(&self, row: usize) -> After {
        After { row, context: self.seen.context.clone(), privileged: self.seen.privileged.clone() }
    }
}

/// Whether NCCL's pair carries the call: what another path takes says nothing of a pair.
fn by_nccl(action: &Action) -> bool {
    usize::from(action.choice[Head::Path as usize]) == Path::Nccl.id()
}

/// The parts of a context: the job's and the call's.
fn split(context: &[f32]) -> (&[f32; JOB_WIDTH], &[f32; CALL_WIDTH]) {
    let (job, call) = context.split_at(JOB_WIDTH);
    (job.as_array().expect("the job's part"), call.as_array().expect("the call's part"))
}
