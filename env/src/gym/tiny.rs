//! The smallest environment that keeps the whole contract: what the checker is tried on before it meets a simulator.
//!
//! A job makes calls of random size. In most of them one of a few legal choices is the fastest, and the
//! size says which; every fourth call has nothing to decide.

use dynamiccl_spec::action::HEADS;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::gym::{Action, Env, EnvError, FeatureSpace, HeadSpace, Observation, Spaces, Transition};

/// Steps after which an episode is cut short; most end before.
const LONGEST: u32 = 32;
/// Choices of the two heads.
const CHOICES: [u32; 2] = [3, 4];

/// The environment.
#[derive(Debug, Clone)]
pub struct Tiny {
    spaces: Spaces,
    seed: u64,
    episode: u64,
    job: Option<Job>,
}

/// A running episode.
#[derive(Debug, Clone)]
struct Job {
    rng: ChaCha8Rng,
    call: u32,
    calls: u32,
    size: f32,
    mask: [u32; HEADS],
    last_reward: f32,
}

/// What a step tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TinyInfo {
    /// The best choice of the first head.
    pub best: u8,
}

impl Default for Tiny {
    fn default() -> Self {
        let feature = |name: &str| FeatureSpace { name: name.to_owned(), width: 1, low: 0.0, high: 1.0 };
        let head = |name: &str, choices: u32| HeadSpace {
            name: name.to_owned(),
            labels: (0..choices).map(|choice| format!("{name}_{choice}")).collect(),
        };
        let spaces = Spaces {
            id: "tiny-v1".to_owned(),
            context: vec![feature("size"), feature("call")],
            history: vec![feature("last_reward"), feature("progress")],
            privileged: Vec::new(),
            heads: vec![head("first", CHOICES[0]), head("second", CHOICES[1])],
        };
        Tiny { spaces, seed: 0, episode: 0, job: None }
    }
}

impl Env for Tiny {
    type Info = TinyInfo;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<TinyInfo, EnvError> {
        (self.seed, self.episode) = match seed {
            Some(seed) => (seed, 0),
            None => (self.seed, self.episode + 1),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.episode);
        let calls = rng.random_range(8..40);
        let mut job = Job { rng, call: 0, calls, size: 0.0, mask: [1; HEADS], last_reward: 0.0 };
        job.draw();
        job.observe(into);
        let info = TinyInfo { best: job.best() };
        self.job = Some(job);
        Ok(info)
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<TinyInfo>, EnvError> {
        let job = self.job.as_mut().ok_or(EnvError::NoEpisode("none has begun, or the last has ended"))?;
        self.spaces.check(&job.mask, &action.choice)?;
        let info = TinyInfo { best: job.best() };
        let wrong = u8::from(action.choice[0] != info.best) + action.choice[1];
        let reward = -f64::from(job.size) * (1.0 + f64::from(wrong));
        job.last_reward = (-reward / 8.0) as f32;
        job.call += 1;
        job.draw();
        job.observe(into);
        let (terminated, truncated) = (job.call >= job.calls, job.call >= LONGEST);
        if terminated || truncated {
            self.job = None;
        }
        Ok(Transition { reward, terminated, truncated, info })
    }
}

impl Job {
    fn draw(&mut self) {
        self.size = self.rng.random::<f32>();
        let first = self.rng.random_range(1..1u32 << CHOICES[0]);
        let second = self.rng.random_range(0..1u32 << CHOICES[1]) | 1;
        let idle = self.call % 4 == 3;
        self.mask = [1; HEADS];
        if !idle {
            (self.mask[0], self.mask[1]) = (first, second);
        }
    }

    /// The legal choice of the first head that the size is nearest to.
    fn best(&self) -> u8 {
        let legal = (0..CHOICES[0]).filter(|choice| self.mask[0] >> choice & 1 == 1);
        let distance = |choice: &u32| ((self.size * 3.0) as u32).abs_diff(*choice);
        legal.min_by_key(distance).unwrap_or(0) as u8
    }

    fn observe(&self, into: &mut Observation) {
        into.context.copy_from_slice(&[self.size, (self.call % 4) as f32 / 4.0]);
        into.history.copy_from_slice(&[self.last_reward.min(1.0), self.call as f32 / LONGEST as f32]);
        into.mask = self.mask;
        into.decides = self.mask.iter().any(|mask| mask.count_ones() > 1);
    }
}
