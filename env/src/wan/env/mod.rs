//! The environment over the WAN: one episode is one job of many collectives, before each of which the agent keeps,
//! reroutes or rebuilds.

mod episode;
pub(super) mod features;

use std::sync::Arc;

use dynamiccl_spec::action::HEADS;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::control::Move;
use super::curriculum::WanCurriculum;
use crate::gym::{Action, Env, EnvError, Observation, Spaces, Stream, Transition};
use episode::Episode;

/// The environment.
#[derive(Debug)]
pub struct WanEnv {
    spaces: Arc<Spaces>,
    curriculum: Arc<WanCurriculum>,
    rng: Option<ChaCha8Rng>,
    /// Where the stream stood when the running episode began.
    began: Option<Stream>,
    episode: Option<Episode>,
}

/// What a step tells beside its reward.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WanInfo {
    /// Collectives of this episode that have run.
    pub collectives: u32,
    /// ms of the last one.
    pub ms: f64,
    /// ms that the change before it cost.
    pub cost_ms: f64,
    /// ms that it would have taken had nothing ever changed.
    pub base_ms: f64,
}

impl WanEnv {
    /// Jobs drawn from a curriculum.
    pub fn new(curriculum: Arc<WanCurriculum>) -> Self {
        WanEnv { spaces: Arc::new(features::spaces()), curriculum, rng: None, began: None, episode: None }
    }

    /// The spaces, as every such environment has them.
    pub fn space() -> Spaces {
        features::spaces()
    }

    /// Where the stream of episodes stood when the running one began; none before the first.
    pub fn stream(&self) -> Option<&Stream> {
        self.began.as_ref()
    }

    /// Begins the episode that began at this point of a stream once more.
    pub fn rejoin(&mut self, stream: &Stream, into: &mut Observation) -> Result<WanInfo, EnvError> {
        self.rng = Some(stream.rng());
        self.reset(None, into)
    }
}

impl Env for WanEnv {
    type Info = WanInfo;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<WanInfo, EnvError> {
        if let Some(seed) = seed {
            self.rng = Some(ChaCha8Rng::seed_from_u64(seed));
        }
        self.began = self.rng.as_ref().map(Stream::of);
        self.episode = None;
        let rng = self.rng.as_mut().ok_or(EnvError::NoEpisode("the first reset needs a seed"))?;
        let lesson = self.curriculum.draw(rng);
        let episode = self.episode.insert(Episode::new(lesson, rng));
        episode.observe(into);
        Ok(WanInfo::default())
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<WanInfo>, EnvError> {
        let Some(episode) = &mut self.episode else {
            return Err(EnvError::NoEpisode("none has begun, or the last one has ended"));
        };
        let mut mask = [1; HEADS];
        mask[0] = episode.legal();
        self.spaces.check(&mask, &action.choice)?;
        let (reward, info) = episode.step(Move::ALL[usize::from(action.choice[0])]);
        episode.observe(into);
        let truncated = episode.is_over();
        if truncated {
            self.episode = None;
        }
        Ok(Transition { reward, terminated: false, truncated, info })
    }
}
