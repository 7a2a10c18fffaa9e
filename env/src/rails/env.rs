//! Photonic rails as an environment: one episode is a few iterations of one job, one step is one request whose
//! ports do not serve it.
//!
//! The first head chooses the path, the second when circuits change. The reward of a step is how much its
//! decision delays the end of the iteration, as a share of it, and a little for each port that changes: over an
//! iteration the rewards add up to exactly what the job loses.

use std::collections::BTreeMap;
use std::sync::Arc;

use dynamiccl_spec::action::HEADS;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::control::{Decision, Request};
use super::fabric::Route;
use super::features::{context_spaces, history_spaces, write_context, write_history};
use super::job::Job;
use super::run::Run;
use super::stage::{Key, RailsStage};
use super::timing::Jitter;
use super::weather::Weather;
use crate::gym::{Action, Env, EnvError, FeatureSpace, HeadSpace, Observation, Spaces, Transition};

/// Labels of the second head.
const TIMING: [&str; 2] = ["hold", "provision"];

/// The environment.
#[derive(Debug, Clone)]
pub struct RailsEnv {
    spaces: Arc<Spaces>,
    stage: Arc<RailsStage>,
    /// Jobs that were drawn before: weaving one takes longer than running it.
    known: BTreeMap<Key, Job>,
    seed: u64,
    number: u64,
    seeded: bool,
    episode: Option<Episode>,
}

#[derive(Debug, Clone)]
struct Episode {
    job: Job,
    run: Run,
    rng: ChaCha8Rng,
    jitter: Jitter,
    iterations: u32,
    asked: Request,
}

/// What a step tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailsInfo {
    /// Iterations that are done.
    pub iterations: u32,
    /// By which share of an iteration the last decision delayed its end.
    pub stall: f64,
    /// Stages whose ports it changed.
    pub changed: u32,
}

impl RailsEnv {
    /// Jobs of a stage.
    pub fn new(stage: Arc<RailsStage>) -> Self {
        let heads =
            vec![head("path", Route::ALL.map(Route::name).as_slice()), head("timing", TIMING.as_slice())];
        let spaces = Spaces {
            id: "rails-v1".to_owned(),
            context: context_spaces(),
            history: history_spaces(),
            privileged: ["surprise_follows", "progress"].map(|name| FeatureSpace::scalar(name, 0.0)).into(),
            heads,
        };
        let spaces = Arc::new(spaces);
        RailsEnv { spaces, stage, known: BTreeMap::new(), seed: 0, number: 0, seeded: false, episode: None }
    }

    /// Where the running episode began: the seed, and how many episodes came before.
    pub fn place(&self) -> (u64, u64) {
        (self.seed, self.number)
    }

    /// Begins the episode of a place once more.
    pub fn rejoin(&mut self, place: (u64, u64), into: &mut Observation) -> Result<RailsInfo, EnvError> {
        (self.seed, self.number) = place;
        self.seeded = true;
        self.begin(into)
    }

    /// What may be answered to a request: nobody provisions what the profile does not hold.
    pub fn mask(asked: &Request) -> [u32; HEADS] {
        let mut mask = [1; HEADS];
        (mask[0], mask[1]) = (0b111, if asked.surprise { 0b01 } else { 0b11 });
        mask
    }

    fn begin(&mut self, into: &mut Observation) -> Result<RailsInfo, EnvError> {
        self.episode = None;
        if !self.seeded {
            return Err(EnvError::NoEpisode("the first reset needs a seed"));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.number);
        let (key, delay, jitter) = self.stage.draw(&mut rng);
        let known = match self.known.get(&key) {
            Some(job) => job.clone(),
            None => {
                let job = self.stage.job(&key).map_err(|error| EnvError::Backend(error.to_string()))?;
                self.known.insert(key, job.clone());
                job
            }
        };
        let job = known.with_delay(delay);
        // The profile was taken in an iteration before these.
        let weather = Weather::draw(&job.graph, &job.profile, &jitter, &mut rng);
        let mut run = Run::new(&job, weather);
        let Some(asked) = run.ask() else {
            return Err(EnvError::Backend(
                "a job whose circuits never change; give it a pipeline".to_owned(),
            ));
        };
        let episode = Episode { job, run, rng, jitter, iterations: 0, asked };
        let episode = self.episode.insert(episode);
        episode.observe(into);
        Ok(RailsInfo { iterations: 0, stall: 0.0, changed: 0 })
    }
}

impl Episode {
    fn mask(&self) -> [u32; HEADS] {
        RailsEnv::mask(&self.asked)
    }

    fn observe(&self, into: &mut Observation) {
        write_context(&self.asked, &mut into.context);
        write_history(self.run.past(), &mut into.history);
        into.privileged[0] = f32::from(u8::from(self.run.betrayed()));
        into.privileged[1] = self.run.progress() as f32;
        into.mask = self.mask();
        into.decides = true;
    }

    /// Goes on to the next request; whether there is one before the job ends.
    fn go_on(&mut self, iterations: u32) -> bool {
        loop {
            if let Some(asked) = self.run.ask() {
                self.asked = asked;
                return true;
            }
            let weather = Weather::draw(&self.job.graph, &self.job.profile, &self.jitter, &mut self.rng);
            self.run.turn(weather);
            self.iterations += 1;
            if self.iterations >= iterations {
                return false;
            }
        }
    }
}

impl Env for RailsEnv {
    type Info = RailsInfo;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<RailsInfo, EnvError> {
        (self.seed, self.number) = match seed {
            Some(seed) => (seed, 0),
            None => (self.seed, self.number + 1),
        };
        self.seeded |= seed.is_some();
        self.begin(into)
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<RailsInfo>, EnvError> {
        let Some(episode) = &mut self.episode else {
            return Err(EnvError::NoEpisode("none has begun, or the last one has ended"));
        };
        self.spaces.check(&episode.mask(), &action.choice)?;
        let route = Route::ALL[usize::from(action.choice[0])];
        let outcome = episode.run.answer(Decision { route, provision: action.choice[1] == 1 });
        let reward = -outcome.stall - self.stage.reconfiguration * f64::from(outcome.changed);
        let goes_on = episode.go_on(self.stage.iterations);
        episode.observe(into);
        let iterations = episode.iterations;
        if !goes_on {
            self.episode = None;
        }
        let info = RailsInfo { iterations, stall: outcome.stall, changed: outcome.changed };
        Ok(Transition { reward, terminated: !goes_on, truncated: false, info })
    }
}

fn head(name: &str, labels: &[&str]) -> HeadSpace {
    HeadSpace { name: name.to_owned(), labels: labels.iter().map(|&label| label.to_owned()).collect() }
}
