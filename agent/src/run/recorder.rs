//! What happens in a run, written down: lines, TensorBoard's events, the best policy so far, checkpoints.

use std::sync::Arc;
use std::time::Instant;

use dynamiccl_env::curriculum::Stage;
use dynamiccl_policies::network::Weights;
use serde::Serialize;

use super::board::{Board, EventFile};
use super::checkpoint::Saved;
use super::error::RunError;
use super::line::{ByTier, Line, Stand, by_tier};
use super::map::Maps;
use super::metrics::Metrics;
use super::{BOARD, METRICS, Run, policy};
use crate::training::{Event, Training};

/// Writes a run down.
#[derive(Debug)]
pub struct Recorder {
    stages: Vec<Arc<Stage>>,
    metrics: Metrics,
    board: Board,
    maps: Option<(usize, Maps)>,
    regret: ByTier,
    began: Instant,
    /// Seconds and steps before this process.
    before: (f64, u64),
    stage: usize,
}

/// How far a run had come when this process took it up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Before {
    /// Steps.
    pub step: u64,
    /// Lines of metrics.
    pub lines: u64,
    /// TensorBoard's files.
    pub events: Vec<EventFile>,
    /// Seconds.
    pub seconds: f64,
    /// Regret by tier when the policy was judged last.
    pub regret: ByTier,
}

impl<S> From<&Saved<S>> for Before {
    fn from(saved: &Saved<S>) -> Self {
        let Saved { step, lines, events, seconds, regret, .. } = saved;
        let (events, regret) = (events.clone(), regret.clone());
        Before { step: *step, lines: *lines, events, seconds: *seconds, regret }
    }
}

impl Recorder {
    /// Begins to write, after what there was before.
    pub fn new(run: &Run, stages: &[Arc<Stage>], before: Before) -> Result<Self, RunError> {
        let metrics = Metrics::open(&run.path(METRICS), before.lines)?;
        Ok(Recorder {
            stages: stages.to_vec(),
            regret: before.regret,
            metrics,
            board: Board::create(&run.path(BOARD), before.step, before.events)?,
            maps: None,
            began: Instant::now(),
            before: (before.seconds, before.step),
            stage: 0,
        })
    }

    /// Seconds of the run so far.
    pub fn seconds(&self) -> f64 {
        self.before.0 + self.began.elapsed().as_secs_f64()
    }

    /// Steps per second since the process began.
    pub fn rate(&self, step: u64) -> f64 {
        let seconds = self.began.elapsed().as_secs_f64();
        if seconds > 0.0 { step.saturating_sub(self.before.1) as f64 / seconds } else { 0.0 }
    }

    /// Writes an event down; the line of it, where it has one.
    pub fn record(
        &mut self,
        run: &Run,
        training: &Training,
        event: &Event,
    ) -> Result<Option<Line>, RunError> {
        let line = match event {
            Event::Updated(update) => {
                self.stage = update.stage;
                self.board.update(update, self.rate(update.step))?;
                Line::update(self.stand(update.step), update)
            }
            Event::Judged { step, stage, report, best, seconds } => {
                self.stage = *stage;
                self.regret = by_tier(report, |figures| figures.regret);
                self.board.judged(*step, report, *seconds)?;
                self.draw(*step, &training.weights())?;
                if *best {
                    self.keep_best(run, training)?;
                }
                Line::eval(self.stand(*step), report, *best, *seconds)
            }
            Event::Promoted { step, from, to, passed, .. } => {
                self.stage = *to;
                let from = self.stages[*from].name.clone();
                Line::promotion(self.stand(*step), from, *passed)
            }
            Event::Done { .. } => return Ok(None),
        };
        self.metrics.add(&line.to_json())?;
        Ok(Some(line))
    }

    /// Saves a state, once all that was written before is on the disk.
    pub fn save<S: Serialize>(&mut self, run: &Run, step: u64, snapshot: S) -> Result<(), RunError> {
        let (lines, seconds) = (self.metrics.sync()?, self.seconds());
        let (events, regret) = (self.board.files(), self.regret.clone());
        run.save(&Saved { step, lines, events, seconds, regret, snapshot }).map(drop)
    }

    fn stand(&self, step: u64) -> Stand {
        Stand {
            step,
            stage: self.stages[self.stage].name.clone(),
            seconds: self.seconds(),
            sps: self.rate(step),
            regret: self.regret.clone(),
        }
    }

    fn draw(&mut self, step: u64, weights: &Weights) -> Result<(), RunError> {
        if self.maps.as_ref().is_none_or(|(stage, _)| *stage != self.stage) {
            self.maps = Some((self.stage, Maps::new(&self.stages[self.stage])));
        }
        let images = self.maps.as_ref().map_or_else(Vec::new, |(_, maps)| maps.draw(weights));
        images.iter().try_for_each(|image| self.board.image(step, image))
    }

    fn keep_best(&self, run: &Run, training: &Training) -> Result<(), RunError> {
        let Some(best) = training.best() else { return Ok(()) };
        let results = vec![("regret.validation".to_owned(), best.regret)];
        let about = policy::about(run.settings(), best.step, results);
        policy::write(&run.best(), best.weights.clone(), about).map(drop)
    }
}
