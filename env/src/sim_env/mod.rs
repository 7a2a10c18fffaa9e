//! The environment over the simulator: one episode is one job in one world.
//!
//! The agent decides each tuned call of a rank; what NCCL does not tune runs by itself and is only
//! observed. Everything hidden (constants, field, weather, luck) comes from the episode's seed, so the
//! same seed gives the same bits. A job replayed from a trace is the same environment with the calls
//! given; a recorded sweep is the same with calls and times given, and real ranks with times made on the spot.

mod dynamics;
mod episode;
mod info;
mod line;
mod lines;
mod run;
mod schedule;
mod swept;
mod view;

use std::sync::Arc;

use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Choice, Knobs, Runtime};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::carrier::Making;
use crate::cluster::Cluster;
use crate::curriculum::Stage;
use crate::gym::{Action, Env, EnvError, FeatureSpace, Observation, Spaces, Stream, Transition};
use crate::job::{Job, Shown};
use crate::lived::Lived;
use crate::model::ConstantsFile;
use crate::question::Question;
use crate::schedules::Schedules;
use crate::sim::Setting;
use crate::swept::Swept;
use crate::world::World;
use crate::world::draw::uniform;
use episode::{Episode, Rules};
pub use info::{Advice, CallReport, SimInfo};

/// What only a critic sees, and the smallest value of each.
const PRIVILEGED: [(&str, f32); 7] = [
    ("load", 0.0),
    ("slowest_rank", 0.0),
    ("working_nics", 0.0),
    ("latency_drift", 0.0),
    ("bandwidth_drift", 0.0),
    ("own_congestion", 0.0),
    ("truth_over_prediction", -1.0),
];

/// Jobs that may end before their first call, in a row.
const TRIES: usize = 100;

/// The environment over the simulator.
#[derive(Debug)]
pub struct SimEnv {
    spaces: Arc<Spaces>,
    jobs: Jobs,
    constants: Arc<ConstantsFile>,
    /// Whether worlds are those that are kept for evaluation.
    kept: bool,
    /// Whether nobody is told what came of a call, whatever the job says.
    untold: bool,
    /// Whether threads can be chosen anew at every call.
    free_threads: bool,
    /// Who makes schedules for jobs that have a runtime for them.
    schedules: Option<Arc<dyn Schedules>>,
    /// The runtime of all jobs, whatever they say.
    runtime: Option<Runtime>,
    rng: Option<ChaCha8Rng>,
    /// Where the stream stood when the running episode began.
    began: Option<Stream>,
    episode: Option<Episode>,
}

/// Where jobs come from.
#[derive(Debug, Clone)]
enum Jobs {
    Drawn(Box<[Arc<Stage>]>),
    Fixed(Box<Job>, Box<Rules>),
    /// Any of these sweeps, of which a policy is told this much, or now this and now that.
    Swept(Box<[Arc<Swept>]>, Option<Shown>),
    /// Real ranks, of which a policy is told this much, or now this and now that.
    Live(Arc<Lived>, Option<Shown>),
}

impl SimEnv {
    /// Jobs drawn from a stage.
    pub fn new(stage: Arc<Stage>, constants: Arc<ConstantsFile>) -> Self {
        Self::mixed([stage], constants)
    }

    /// Jobs drawn from stages, all as likely.
    ///
    /// # Panics
    ///
    /// Without a stage.
    pub fn mixed(stages: impl IntoIterator<Item = Arc<Stage>>, constants: Arc<ConstantsFile>) -> Self {
        let stages: Box<[_]> = stages.into_iter().collect();
        assert!(!stages.is_empty(), "an environment needs a stage");
        Self::over(Jobs::Drawn(stages), constants, "sim-v1")
    }

    /// One job over and over, each time in another world; the stage says how it is judged.
    pub fn of_job(job: Job, stage: &Stage, constants: Arc<ConstantsFile>) -> Self {
        let rules = Rules { regime: None, ..rules(stage) };
        let id = if matches!(job.source, crate::job::Source::Trace(_)) { "trace-v1" } else { "sim-v1" };
        Self::over(Jobs::Fixed(Box::new(job), Box::new(rules)), constants, id)
    }

    /// Calls of recorded sweeps, all as likely, with the times that were measured there. A policy is told of the machine
    /// what `shown` says, or where it says nothing now all, now nothing, as deployments do.
    ///
    /// # Panics
    ///
    /// Without a sweep.
    pub fn of_sweeps(
        sweeps: impl IntoIterator<Item = Arc<Swept>>,
        shown: Option<Shown>,
        constants: Arc<ConstantsFile>,
    ) -> Self {
        let sweeps: Box<[_]> = sweeps.into_iter().collect();
        assert!(!sweeps.is_empty(), "an environment needs a sweep");
        Self::over(Jobs::Swept(sweeps, shown), constants, "sweep-v1")
    }

    /// Calls on real ranks, all in turn. A policy is told of the machine what `shown` says, or where it says nothing now
    /// all, now nothing. Several environments may share the ranks: they wait for each other.
    pub fn of_live(lived: Arc<Lived>, shown: Option<Shown>, constants: Arc<ConstantsFile>) -> Self {
        Self::over(Jobs::Live(lived, shown), constants, "live-v1")
    }

    fn over(jobs: Jobs, constants: Arc<ConstantsFile>, id: &str) -> Self {
        let privileged = PRIVILEGED.iter().map(|(name, low)| FeatureSpace::scalar(name, *low));
        let spaces = Arc::new(Spaces::of_knobs(id, privileged.collect()));
        SimEnv {
            spaces,
            jobs,
            constants,
            kept: false,
            untold: false,
            free_threads: false,
            schedules: None,
            runtime: None,
            rng: None,
            began: None,
            episode: None,
        }
    }

    /// The same jobs in worlds that are kept for evaluation: none of them is one that training meets.
    pub fn kept(self) -> Self {
        SimEnv { kept: true, ..self }
    }

    /// The same jobs without feedback.
    pub fn untold(self) -> Self {
        SimEnv { untold: true, ..self }
    }

    /// Whether no job has feedback.
    pub fn is_untold(&self) -> bool {
        self.untold
    }

    /// The same jobs with threads that can be chosen anew at every call, as no plugin API can: for oracles.
    pub fn free_threads(self) -> Self {
        SimEnv { free_threads: true, ..self }
    }

    /// The same jobs with synthesised schedules by these where a job has a runtime that runs them.
    pub fn with_schedules(self, schedules: Arc<dyn Schedules>) -> Self {
        SimEnv { schedules: Some(schedules), ..self }
    }

    /// The same jobs, all with this runtime.
    pub fn with_runtime(self, runtime: Runtime) -> Self {
        SimEnv { runtime: Some(runtime), ..self }
    }

    /// The cluster of the job, and its nodes; none before the first reset and after the last call.
    pub fn machine(&self) -> Option<(&Arc<Cluster>, u32)> {
        self.episode.as_ref().map(|episode| (&episode.job.cluster, episode.job.nodes))
    }

    /// Whether times were measured and are not simulated.
    pub fn is_recorded(&self) -> bool {
        matches!(self.jobs, Jobs::Swept(..) | Jobs::Live(..))
    }

    /// The call that is observed now, as a tuner is asked about it; none where the job is done. What NCCL does not tune
    /// has no knobs of its own.
    pub fn question(&self) -> Option<Question> {
        self.episode.as_ref().and_then(Episode::question)
    }

    /// Runs the call that is observed now with other knobs, beside the job: the setting with its true time,
    /// and what it took. Nothing where the knobs are not legal.
    pub fn attempt(&mut self, knobs: &Knobs) -> Option<(Setting, f64)> {
        self.episode.as_mut().and_then(|episode| episode.attempt(*knobs))
    }

    /// Whether all ranks were told what came of the last call.
    pub fn told(&self) -> bool {
        self.episode.as_ref().is_some_and(|episode| episode.memory.past.feedback.is_some())
    }

    /// Every legal setting of the call that is observed now, with its true time in the exogenous state;
    /// the first is NCCL's own. Costly: for oracles and evaluation, on request only.
    pub fn settings(&mut self) -> Vec<Setting> {
        self.episode.as_mut().map(Episode::settings).unwrap_or_default()
    }

    /// Every different launch of the call that is observed now, with any number of threads whatever the job
    /// has chosen, and its true time in the exogenous state; the first is NCCL's own. Nothing that can run is
    /// faster than all of them. Costly: for oracles and evaluation, on request only.
    pub fn truths(&self) -> Vec<Setting> {
        self.episode.as_ref().map(Episode::truths).unwrap_or_default()
    }

    /// ln(NCCL's own true time ÷ that of the synthesised schedule of the call that is observed now); none where
    /// none can be chosen.
    pub fn schedule_gain(&self) -> Option<f32> {
        self.episode.as_ref().and_then(Episode::schedule_gain)
    }

    /// ln(NCCL's own true time ÷ that of every choice) for pair × channels × chunk of the call that is observed
    /// now, on NCCL's path with threads as chosen: not a number where a choice cannot run. Gives ln(NCCL's own true
    /// time ÷ the predicted time of each pair), or nothing where there is nothing to choose. Costly: for training in
    /// hindsight and on request only.
    pub fn gains(&self, chosen: &Choice, into: &mut [f32]) -> Option<[f32; PAIRS]> {
        self.episode.as_ref().and_then(|episode| episode.gains(chosen, into))
    }

    /// Where the stream of episodes stood when the running one began; none before the first.
    pub fn stream(&self) -> Option<&Stream> {
        self.began.as_ref()
    }

    /// Begins the episode that began at this point of a stream once more.
    pub fn rejoin(&mut self, stream: &Stream, into: &mut Observation) -> Result<SimInfo, EnvError> {
        self.rng = Some(stream.rng());
        self.reset(None, into)
    }

    fn begin(&mut self) -> Result<Episode, EnvError> {
        let rng = self.rng.as_mut().ok_or(EnvError::NoEpisode("the first reset needs a seed"))?;
        let backend = |error: &dyn std::fmt::Display| EnvError::Backend(error.to_string());
        let (mut job, mut rules) = match &self.jobs {
            Jobs::Drawn(stages) => {
                let stage = replayed(&stages[rng.random_range(0..stages.len())], rng);
                (Job::draw(stage, rng).map_err(|error| backend(&error))?, rules(stage))
            }
            Jobs::Swept(sweeps, shown) => {
                let swept = &sweeps[rng.random_range(0..sweeps.len())];
                let shown = shown.unwrap_or_else(|| swept::shown(rng));
                (Job { world: rng.random(), ..swept.job(shown) }, swept::RULES)
            }
            Jobs::Live(lived, shown) => {
                let shown = shown.unwrap_or_else(|| swept::shown(rng));
                (Job { world: rng.random(), ..lived.job(shown) }, swept::RULES)
            }
            Jobs::Fixed(job, rules) => (Job { world: rng.random(), ..(**job).clone() }, (**rules).clone()),
        };
        let events = ChaCha8Rng::seed_from_u64(rng.random());
        if self.untold {
            job.feedback_every = None;
        }
        rules.free_threads = self.free_threads;
        let draw = if self.kept { World::keep } else { World::draw };
        let world = draw(&self.constants, job.world);
        job.setting.runtime = self.runtime.unwrap_or(job.setting.runtime);
        let schedules = self.schedules.as_deref().filter(|_| job.setting.runtime == Runtime::Msccl);
        let nominal = schedules.map(|schedules| (schedules, self.constants.nominal()));
        let making =
            nominal.as_ref().map(|(schedules, constants)| Making { schedules: *schedules, constants });
        Episode::new(job, rules, &world, making.as_ref(), events).map_err(|error| backend(&error))
    }
}

/// The stage that an episode comes from: this one, or one of those that stay.
fn replayed<'a>(stage: &'a Stage, rng: &mut ChaCha8Rng) -> &'a Stage {
    let draw = uniform(rng);
    let share = stage.file.replay.share;
    if draw >= share || stage.replay.is_empty() {
        return stage;
    }
    let at = (draw / share * stage.replay.len() as f64) as usize;
    &stage.replay[at.min(stage.replay.len() - 1)]
}

fn rules(stage: &Stage) -> Rules {
    let file = &stage.file;
    Rules {
        dynamics: file.dynamics,
        weights: file.reward,
        calls: file.workload.calls,
        regime: Some(file.regime.clone()),
        free_threads: false,
    }
}

impl Env for SimEnv {
    type Info = SimInfo;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<SimInfo, EnvError> {
        if let Some(seed) = seed {
            self.rng = Some(ChaCha8Rng::seed_from_u64(seed));
        }
        self.episode = None;
        self.began = self.rng.as_ref().map(Stream::of);
        for _ in 0..TRIES {
            let episode = self.begin()?;
            if episode.mask().is_some() {
                episode.observe(into);
                return Ok(self.episode.insert(episode).info(None));
            }
        }
        let why = "jobs end before their first call; give them more iterations, or calls that NCCL carries";
        Err(EnvError::Backend(why.to_owned()))
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<SimInfo>, EnvError> {
        let Some(episode) = &mut self.episode else {
            return Err(EnvError::NoEpisode("none has begun, or the last one has ended"));
        };
        let mask = episode.mask().ok_or(EnvError::NoEpisode("the job is done"))?;
        if mask.refuses(&Choice(action.choice)).is_some() {
            self.spaces.check(&mask.all_bits(), &action.choice)?;
        }
        if let (Jobs::Live(lived, _), Some((collective, bytes, knobs, realised))) =
            (&self.jobs, episode.ahead(action))
        {
            lived.run((collective, bytes), &knobs, &realised)?;
        }
        let (ended, report) = episode.step(action);
        episode.observe(into);
        let info = episode.info(Some(report));
        if ended.terminated || ended.truncated {
            self.episode = None;
        }
        let episode::Ended { reward, terminated, truncated } = ended;
        Ok(Transition { reward, terminated, truncated, info })
    }
}
