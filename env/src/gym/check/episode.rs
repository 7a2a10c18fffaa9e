//! One episode of random legal actions, kept as fingerprints: what two runs are compared by.

use dynamiccl_spec::action::HEADS;

use crate::gym::{Action, Env, EnvError, Observation, RandomActor};

/// An episode being run.
pub struct Episode<'a, E: Env> {
    env: &'a mut E,
    observation: Observation,
    fill: f32,
    actions: RandomActor,
    record: Record<E::Info>,
    over: bool,
}

/// What came of an episode, bit by bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<I> {
    /// Of the reset and each step: observation, reward and flags, or the error.
    pub prints: Vec<u64>,
    /// What each of them told.
    pub infos: Vec<I>,
    /// Whether it ended by a flag.
    pub ended: bool,
}

impl<'a, E: Env> Episode<'a, E> {
    /// Resets. The observation is full of `fill` before every call.
    pub fn begin(env: &'a mut E, seed: Option<u64>, fill: f32) -> Self {
        let observation = Observation::new(env.spaces());
        let record = Record { prints: Vec::new(), infos: Vec::new(), ended: false };
        // The same wishes in every episode, so that only the environment makes the difference.
        let actions = RandomActor::new(0);
        let mut episode = Episode { env, observation, fill, actions, record, over: false };
        episode.refill();
        match episode.env.reset(seed, &mut episode.observation) {
            Ok(info) => {
                episode.record.prints.push(print(&episode.observation, 0));
                episode.record.infos.push(info);
            }
            Err(error) => episode.stop(&error),
        }
        episode
    }

    /// Runs at most so many steps.
    pub fn run(mut self, steps: usize) -> Record<E::Info> {
        for _ in 0..steps {
            self.step();
        }
        self.record
    }

    /// One random legal step; nothing after the end, or where no action is legal.
    pub fn step(&mut self) {
        let Some(action) = self.wish() else { return };
        self.refill();
        match self.env.step(&action, &mut self.observation) {
            Ok(transition) => {
                let flags = u64::from(transition.terminated) << 1 | u64::from(transition.truncated);
                let rest = mix(transition.reward.to_bits(), flags);
                self.record.prints.push(print(&self.observation, rest));
                self.record.infos.push(transition.info);
                self.record.ended = flags != 0;
                self.over = self.record.ended;
            }
            Err(error) => self.stop(&error),
        }
    }

    /// The next action, if there is one.
    fn wish(&mut self) -> Option<Action> {
        let action = self.actions.try_act(&self.observation).filter(|_| !self.over);
        self.over = action.is_none();
        action
    }

    /// Tries an action that the mask forbids. `None` if it is refused as it should be.
    pub fn provoke(&mut self, choice: [u8; HEADS]) -> Option<String> {
        let mut scratch = self.observation.clone();
        match self.env.step(&Action { choice, exploratory: false }, &mut scratch) {
            // An end that was not announced is the business of another rule.
            Err(EnvError::Illegal { .. } | EnvError::NoEpisode(_)) => None,
            Err(other) => Some(format!("{choice:?} is refused with another error: {other}")),
            Ok(_) => Some(format!("{choice:?} is accepted (masks {:x?})", self.observation.mask)),
        }
    }

    /// What is observed, if the episode still runs.
    pub fn observed(&self) -> Option<&Observation> {
        (!self.over).then_some(&self.observation)
    }

    /// What came of it so far.
    pub fn record(self) -> Record<E::Info> {
        self.record
    }

    fn stop(&mut self, error: &EnvError) {
        let text = error.to_string();
        self.record.prints.push(text.bytes().fold(1, |hash, byte| mix(hash, u64::from(byte))));
        self.over = true;
    }

    fn refill(&mut self) {
        let Observation { context, history, privileged, mask, decides } = &mut self.observation;
        context.fill(self.fill);
        privileged.fill(self.fill);
        history.fill(self.fill);
        mask.fill(self.fill.to_bits());
        *decides = self.fill.is_nan();
    }
}

fn print(observation: &Observation, rest: u64) -> u64 {
    let Observation { context, history, privileged, mask, decides } = observation;
    let numbers = context.iter().chain(history).chain(privileged).map(|x| x.to_bits());
    let words = numbers.chain(mask.iter().copied()).chain([u32::from(*decides)]);
    words.fold(rest, |hash, word| mix(hash, u64::from(word)))
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
