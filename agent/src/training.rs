//! A curriculum being learned: stage after stage, judged on worlds of its own, until the last is done.
//!
//! A stage ends early when its bar is passed; what is kept is the policy that did best where it was
//! judged. Nothing here writes files or prints; whoever drives it decides what becomes of its events.

use std::sync::Arc;
use std::time::Instant;

use dynamiccl_env::gym::{Env, seed_of};
use dynamiccl_policies::network::Weights;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::TrainError;
use crate::learn::{Device, Learner, MissingDevice};
use crate::params::Layout;
use crate::progress::Update;
use crate::rollout::Trainable;
use crate::subject::{Look, Stop, Subject, Verdict};
use crate::trainer::{At, Makings, Saved, Trainer};

/// The seed of the worlds that policies are judged on while they train; evaluations use another.
const VALIDATION: u64 = 0x76_616c_6964;

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Setup<S> {
    /// What is learned.
    pub subject: S,
    /// How.
    pub config: Config,
    /// The seed of everything random.
    pub seed: u64,
    /// Threads to work on; they change nothing but the time.
    pub threads: usize,
    /// Where gradients are worked out.
    pub device: Device,
}

/// A curriculum being learned.
#[derive(Debug)]
pub struct Training<S: Subject> {
    setup: Setup<S>,
    stages: Vec<S::Stage>,
    stage: usize,
    stage_step: u64,
    /// Steps of the stage when the policy was judged last.
    judged_at: u64,
    /// What the last judgement of the stage found.
    regret: Option<f64>,
    best: Option<Best>,
    trainer: Trainer<S::Env>,
}

/// The policy that did best.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Steps of the run.
    pub step: u64,
    /// What was judged.
    pub score: f64,
    /// Its regret.
    pub regret: f64,
    /// Its weights.
    pub weights: Weights,
}

/// Everything for going on with the same bits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Snapshot<P> {
    stage: usize,
    stage_step: u64,
    judged_at: u64,
    regret: Option<f64>,
    best: Option<(u64, f64, f64, Vec<Vec<f32>>)>,
    trainer: Saved<P>,
}

/// What a unit of work came to.
#[derive(Debug)]
pub enum Event<V> {
    /// A rollout was learned from.
    Updated(Box<Update>),
    /// The policy was judged.
    Judged {
        /// Steps of the run.
        step: u64,
        /// The stage.
        stage: usize,
        /// What was found.
        verdict: Box<V>,
        /// Whether it is the best of its stage so far.
        best: bool,
        /// Seconds that it took.
        seconds: f64,
    },
    /// The next stage begins.
    Promoted {
        /// Steps of the run.
        step: u64,
        /// The stage that has ended.
        from: usize,
        /// The one that begins.
        to: usize,
        /// The last regret.
        regret: f64,
        /// Whether that is below the stage's bar; else it has run out of steps.
        passed: bool,
    },
    /// All stages are done.
    Done {
        /// Steps of the run.
        step: u64,
    },
}

/// Where the environments of a subject stand.
pub type PlaceOf<S> = <<S as Subject>::Env as Trainable>::Place;

impl<S: Subject> Training<S> {
    /// A run that begins.
    pub fn new(setup: Setup<S>) -> Result<Self, TrainError> {
        let stages = stages(&setup);
        let make = setup.subject.make(&stages[..1], &setup.config);
        let look = setup.subject.make(&stages, &setup.config);
        let trainer = Trainer::new(makings(&setup, &make())?, seed_of(setup.seed, 0), &make, &look)?;
        drop((make, look));
        let (stage, stage_step, judged_at, regret, best) = (0, 0, 0, None, None);
        Ok(Training { setup, stages, stage, stage_step, judged_at, regret, best, trainer })
    }

    /// A run that goes on.
    pub fn resume(setup: Setup<S>, snapshot: Snapshot<PlaceOf<S>>) -> Result<Self, TrainError> {
        let stages = stages(&setup);
        let Snapshot { stage, stage_step, judged_at, regret, best, trainer } = snapshot;
        let current = stages.get(stage).ok_or(TrainError::Snapshot("it is at a stage that there is not"))?;
        let make = setup.subject.make(std::slice::from_ref(current), &setup.config);
        let trainer = Trainer::restore(makings(&setup, &make())?, trainer, &make)?;
        drop(make);
        let shape = setup.config.network.shape();
        let best = best.map(|(step, score, regret, tensors)| {
            let weights = Weights::from_tensors(shape, tensors);
            let weights = weights.ok_or(TrainError::Snapshot("its best policy has another shape"))?;
            Ok::<_, TrainError>(Best { step, score, regret, weights })
        });
        let best = best.transpose()?;
        Ok(Training { setup, stages, stage, stage_step, judged_at, regret, best, trainer })
    }

    /// Everything that [`Training::resume`] needs to go on with the same bits.
    pub fn snapshot(&self) -> Snapshot<PlaceOf<S>> {
        let tensors = |weights: &Weights| weights.tensors().map(|(_, _, tensor)| tensor.to_vec()).collect();
        let best = self.best.as_ref();
        Snapshot {
            stage: self.stage,
            stage_step: self.stage_step,
            judged_at: self.judged_at,
            regret: self.regret,
            best: best.map(|best| (best.step, best.score, best.regret, tensors(&best.weights))),
            trainer: self.trainer.save(),
        }
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.trainer.steps()
    }

    /// The most steps that the run can take.
    pub fn planned_steps(&self) -> u64 {
        let later: u64 = self.stages[self.stage..].iter().map(|stage| self.most_steps(stage)).sum();
        self.steps() + later.saturating_sub(self.stage_step)
    }

    /// The most steps of a stage. A run without the curriculum is no shorter than one with it.
    fn most_steps(&self, stage: &S::Stage) -> u64 {
        if self.setup.config.without.curriculum {
            return self.setup.subject.stages().iter().map(|stage| S::promotion(stage).max_steps).sum();
        }
        S::promotion(stage).max_steps
    }

    /// What is learned.
    pub fn subject(&self) -> &S {
        &self.setup.subject
    }

    /// The stages of the run.
    pub fn stages(&self) -> &[S::Stage] {
        &self.stages
    }

    /// The policy as it would be left behind now: of the mean of the last parameters.
    pub fn weights(&self) -> Weights {
        self.trainer.weights()
    }

    /// The policy that did best in this stage; none before it was judged.
    pub fn best(&self) -> Option<&Best> {
        self.best.as_ref()
    }

    /// The policy to leave behind, and its step: the best of this stage, or the present one where that was never judged or,
    /// judged now, does better. Whoever goes on training finds everything as it was.
    ///
    /// `going_on` is asked while it is judged and stops that with its error.
    pub fn outcome<E: Stop>(&self, going_on: impl Fn() -> Result<(), E> + Sync) -> Result<(Weights, u64), E> {
        let now = (self.weights(), self.steps());
        let Some(best) = &self.best else { return Ok(now) };
        let kept = (best.weights.clone(), best.step);
        if self.judged_at == self.stage_step {
            return Ok(kept);
        }
        let worlds = self.setup.config.evaluation.worlds;
        let verdict = self.look(&now.0, VALIDATION, worlds, |_| going_on())?;
        Ok(if verdict.score() < best.score { now } else { kept })
    }

    /// Does the next unit of work.
    pub fn step(&mut self) -> Result<Event<S::Verdict>, TrainError> {
        self.step_while(|| Ok(()))
    }

    /// The same; `going_on` is asked while a policy is judged and stops that with its error, after which everything is as
    /// it was before.
    pub fn step_while<E: Stop>(
        &mut self,
        going_on: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<Event<S::Verdict>, E> {
        let stage = &self.stages[self.stage];
        let (promotion, most) = (S::promotion(stage), self.most_steps(stage));
        let over = self.stage_step >= most;
        let due = self.stage_step - self.judged_at >= self.setup.config.evaluation.every;
        if (over && self.judged_at < self.stage_step) || due {
            return self.judge(going_on);
        }
        let last = self.stage + 1 == self.stages.len();
        let passed = self.regret.is_some_and(|regret| regret <= promotion.regret);
        let early = !last && passed && self.stage_step >= promotion.min_steps;
        match (over || early, last) {
            (true, true) => Ok(Event::Done { step: self.steps() }),
            (true, false) => Ok(self.promote(passed)?),
            (false, _) => Ok(self.update(most)?),
        }
    }

    fn update(&mut self, most: u64) -> Result<Event<S::Verdict>, TrainError> {
        let share = (self.stage_step as f64 / most.max(1) as f64).min(1.0);
        let update = self.trainer.update(At { stage: self.stage, step: self.stage_step, share })?;
        self.stage_step = update.stage_step;
        Ok(Event::Updated(Box::new(update)))
    }

    fn promote(&mut self, passed: bool) -> Result<Event<S::Verdict>, TrainError> {
        let (from, to) = (self.stage, self.stage + 1);
        let regret = self.regret.take().unwrap_or(f64::INFINITY);
        // Seed by seed, so that the episodes of a stage do not depend on how long the one before took.
        let seed = seed_of(self.setup.seed, to);
        self.trainer.enter(seed, self.setup.subject.make(&self.stages[to..=to], &self.setup.config))?;
        (self.stage, self.stage_step, self.judged_at, self.best) = (to, 0, 0, None);
        Ok(Event::Promoted { step: self.steps(), from, to, regret, passed })
    }

    fn judge<E: Stop>(
        &mut self,
        going_on: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<Event<S::Verdict>, E> {
        let began = Instant::now();
        let weights = self.weights();
        // In worlds that neither training nor an evaluation meets.
        let worlds = self.setup.config.evaluation.worlds;
        let verdict = self.look(&weights, VALIDATION, worlds, |_| going_on())?;
        self.judged_at = self.stage_step;
        let (regret, score) = (verdict.regret(), verdict.score());
        self.regret = Some(regret);
        let best = self.best.as_ref().is_none_or(|best| score < best.score);
        if best {
            self.best = Some(Best { step: self.steps(), score, regret, weights });
        }
        let (verdict, seconds) = (Box::new(verdict), began.elapsed().as_secs_f64());
        Ok(Event::Judged { step: self.steps(), stage: self.stage, verdict, best, seconds })
    }

    /// Judges the best policy of this stage anew, for it is judged otherwise now; and forgets the present one's regret, so
    /// that no stage ends by what the former judgement found.
    pub fn judge_best_anew<E: Stop>(&mut self, going_on: impl Fn() -> Result<(), E> + Sync) -> Result<(), E> {
        if let Some(best) = &self.best {
            let worlds = self.setup.config.evaluation.worlds;
            let verdict = self.look(&best.weights, VALIDATION, worlds, |_| going_on())?;
            let (regret, score) = (verdict.regret(), verdict.score());
            self.best = self.best.take().map(|best| Best { regret, score, ..best });
        }
        self.regret = None;
        Ok(())
    }

    /// Judges a policy on the present stage, in so many worlds of a seed; `step` is told how far that is and stops with
    /// its error.
    pub fn look<E: Stop>(
        &self,
        weights: &Weights,
        seed: u64,
        worlds: u32,
        step: impl Fn(u64) -> Result<(), E> + Sync,
    ) -> Result<S::Verdict, E> {
        let Setup { subject, config, threads, .. } = &self.setup;
        let look = Look { config, seed, worlds, threads: *threads };
        subject.judge(&self.stages[self.stage], weights, &look, step)
    }
}

/// The stages of a run: all of the curriculum, or only the last where the run does without.
fn stages<S: Subject>(setup: &Setup<S>) -> Vec<S::Stage> {
    let mut all = setup.subject.stages();
    if setup.config.without.curriculum {
        all.drain(..all.len() - 1);
    }
    all
}

fn makings<S: Subject>(setup: &Setup<S>, env: &S::Env) -> Result<Makings, MissingDevice> {
    let layout = Layout::new(&setup.config.network, env.spaces().privileged_width());
    let learner = Learner::new(Arc::new(layout), setup.device)?;
    Ok(Makings { config: setup.config.clone(), learner, threads: setup.threads })
}
