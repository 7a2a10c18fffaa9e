//! Small tasks in the clothes of the simulator: every width, mask and episode border is that of the knobs,
//! so that the real network and the real trainer are tried, and only what is right is made up.

use dynamiccl_agent::rollout::{Outcome, Trainable};
use dynamiccl_env::gym::{Action, Env, EnvError, Observation, Spaces, Transition};
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, JOB_WIDTH, catalogue};
use dynamiccl_spec::{Head, Mask};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Calls whose cue says what is right.
pub const CUES: usize = 4;

/// What makes one task another.
pub trait Rules: Clone + Send {
    /// Calls of an episode.
    const CALLS: u32;
    /// Whether the last call of an episode ends the job, or the episode is cut short there.
    const TERMINATES: bool = true;

    /// Draws a call and says what it shows. What is not set is 0, and there is nothing to decide.
    fn show(&mut self, call: u32, rng: &mut ChaCha8Rng, shown: &mut Shown);

    /// What these choices are worth in that call, and whether they are right where there was a right one.
    fn judge(&mut self, call: u32, choice: &[u8; HEADS]) -> (f64, Option<bool>);
}

/// What a call shows.
#[derive(Debug)]
pub struct Shown<'a>(&'a mut Observation);

/// An environment of one task.
#[derive(Debug, Clone)]
pub struct Task<R> {
    spaces: Spaces,
    rules: R,
    seed: u64,
    episode: u64,
    rng: ChaCha8Rng,
    mask: [u32; HEADS],
    call: Option<u32>,
}

impl Shown<'_> {
    /// A cue in the context.
    pub fn cue(&mut self, cue: usize) {
        let collective = catalogue::slot("collective").expect("a feature");
        self.0.context[JOB_WIDTH + collective.start + cue] = 1.0;
    }

    /// A cue in the history row.
    pub fn past_cue(&mut self, cue: usize) {
        let pair = catalogue::slot("last_pair").expect("a feature");
        self.0.history[pair.start + cue] = 1.0;
    }

    /// Lets a head choose among these bits; the call decides if that is a choice.
    pub fn allow(&mut self, head: Head, bits: u32) {
        self.0.mask[head as usize] = bits;
        self.0.decides |= bits.count_ones() > 1;
    }
}

impl<R: Rules> Task<R> {
    /// A task that has not begun.
    pub fn new(rules: R) -> Self {
        Task {
            spaces: Spaces::of_knobs("task-v1", Vec::new()),
            rules,
            seed: 0,
            episode: 0,
            rng: ChaCha8Rng::seed_from_u64(0),
            mask: [1; HEADS],
            call: None,
        }
    }

    /// Begins the episode that the seed and its number say.
    fn begin(&mut self, into: &mut Observation) -> Result<Option<bool>, EnvError> {
        self.rng = ChaCha8Rng::seed_from_u64(self.seed);
        self.rng.set_stream(self.episode);
        self.call = Some(0);
        self.observe(0, into);
        Ok(None)
    }

    fn observe(&mut self, call: u32, into: &mut Observation) {
        into.context.fill(0.0);
        into.history.fill(0.0);
        assert_eq!((into.context.len(), into.history.len()), (CONTEXT_WIDTH, HISTORY_WIDTH));
        into.context[catalogue::slot("pipeline_role").expect("a feature").start] = 1.0;
        if call > 0 {
            // Every call is measured, and its time says nothing: nobody remembers anything of a job that is told none.
            into.history[catalogue::slot("has_feedback").expect("a feature").start] = 1.0;
        }
        // A size that means nothing: no two episodes look the same, and it must be learned to be ignored.
        into.context[JOB_WIDTH + catalogue::slot("log2_bytes").expect("a feature").start] = self.rng.random();
        into.mask = Mask::FIRST.all_bits();
        into.decides = false;
        self.rules.show(call, &mut self.rng, &mut Shown(into));
        self.mask = into.mask;
    }
}

impl<R: Rules> Trainable for Task<R> {
    type Place = (u64, u64);

    fn place(&self) -> (u64, u64) {
        (self.seed, self.episode)
    }

    fn rejoin(
        &mut self,
        &(seed, episode): &(u64, u64),
        into: &mut Observation,
    ) -> Result<Self::Info, EnvError> {
        (self.seed, self.episode) = (seed, episode);
        self.begin(into)
    }

    fn always_remembers(&self) -> bool {
        false
    }

    fn outcome(_: &Self::Info) -> Outcome {
        Outcome::default()
    }
}

impl<R: Rules> Env for Task<R> {
    /// Whether what was done was right.
    type Info = Option<bool>;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<Self::Info, EnvError> {
        (self.seed, self.episode) = match seed {
            Some(seed) => (seed, 0),
            None => (self.seed, self.episode + 1),
        };
        self.begin(into)
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<Self::Info>, EnvError> {
        let call = self.call.ok_or(EnvError::NoEpisode("none has begun, or the last has ended"))?;
        self.spaces.check(&self.mask, &action.choice)?;
        let (reward, info) = self.rules.judge(call, &action.choice);
        let ended = call + 1 == R::CALLS;
        self.call = (!ended).then_some(call + 1);
        self.observe(call + 1, into);
        Ok(Transition {
            reward,
            terminated: ended && R::TERMINATES,
            truncated: ended && !R::TERMINATES,
            info,
        })
    }
}
