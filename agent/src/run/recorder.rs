//! What happens in a run, written down: lines, TensorBoard's events, the best policy so far, checkpoints.

use std::fs::File;
use std::time::Instant;

use dynamiccl_policies::network::Weights;
use serde::Serialize;

use super::board::{Board, EventFile};
use super::checkpoint::Saved;
use super::error::RunError;
use super::line::{Line, Stand};
use super::metrics::Metrics;
use super::{BOARD, METRICS, Run, policy};
use crate::subject::map::Maps;
use crate::subject::{ByPlace, Subject, Verdict};
use crate::training::{Event, Training};

/// Writes a run down.
#[derive(Debug)]
pub struct Recorder<S: Subject> {
    stages: Vec<S::Stage>,
    metrics: Metrics,
    board: Board,
    /// Maps of a stage, where it has any.
    maps: Option<(usize, Option<Maps>)>,
    watched: ByPlace,
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
    /// The watched figure when the policy was judged last.
    pub watched: ByPlace,
}

impl<P> From<&Saved<P>> for Before {
    fn from(saved: &Saved<P>) -> Self {
        let Saved { step, lines, events, seconds, watched, .. } = saved;
        let (events, watched) = (events.clone(), watched.clone());
        Before { step: *step, lines: *lines, events, seconds: *seconds, watched }
    }
}

impl<S: Subject> Recorder<S> {
    /// Begins to write, after what there was before.
    pub fn new(run: &Run, stages: &[S::Stage], before: Before) -> Result<Self, RunError> {
        let metrics = Metrics::open(&run.path(METRICS), before.lines)?;
        let board = Board::create(&run.path(BOARD), before.step, before.events)?;
        // A checkpoint counts on these files, so their names must be on the disk before it is.
        for folder in [run.path(BOARD), run.folder().to_owned()] {
            File::open(&folder).and_then(|folder| folder.sync_all()).map_err(RunError::write(&folder))?;
        }
        Ok(Recorder {
            stages: stages.to_vec(),
            watched: before.watched,
            metrics,
            board,
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
        training: &Training<S>,
        event: &Event<S::Verdict>,
    ) -> Result<Option<Line>, RunError> {
        let line = match event {
            Event::Updated(update) => {
                self.stage = update.stage;
                self.board.update(update, self.rate(update.step))?;
                Line::update(self.stand(update.step), update)
            }
            Event::Judged { step, stage, verdict, best, seconds } => {
                let mut figures = verdict.figures();
                self.stage = *stage;
                self.board.judged(*step, &figures, *seconds)?;
                self.watched = figures.remove(S::WATCHED).unwrap_or_default();
                self.draw(*step, &training.weights())?;
                if *best {
                    self.keep_best(run, training)?;
                }
                Line::eval(self.stand(*step), figures, *best, *seconds)
            }
            Event::Promoted { step, from, to, passed, .. } => {
                self.stage = *to;
                let from = S::name(&self.stages[*from]).to_owned();
                Line::promotion(self.stand(*step), from, *passed)
            }
            Event::Done { .. } => return Ok(None),
        };
        self.metrics.add(&line.to_json())?;
        Ok(Some(line))
    }

    /// Saves a state, once all that was written before is on the disk.
    pub fn save<P: Serialize>(&mut self, run: &Run, step: u64, snapshot: P) -> Result<(), RunError> {
        let (lines, seconds) = (self.metrics.sync()?, self.seconds());
        let (events, watched) = (self.board.sync()?, self.watched.clone());
        run.save(&Saved { step, lines, events, seconds, watched, snapshot }).map(drop)
    }

    fn stand(&self, step: u64) -> Stand {
        Stand {
            step,
            stage: S::name(&self.stages[self.stage]).to_owned(),
            seconds: self.seconds(),
            sps: self.rate(step),
            watched: [(S::WATCHED, self.watched.clone())].into(),
        }
    }

    fn draw(&mut self, step: u64, weights: &Weights) -> Result<(), RunError> {
        if self.maps.as_ref().is_none_or(|(stage, _)| *stage != self.stage) {
            self.maps = Some((self.stage, S::maps(&self.stages[self.stage])));
        }
        let maps = self.maps.as_ref().and_then(|(_, maps)| maps.as_ref());
        let images = maps.map_or_else(Vec::new, |maps| maps.draw(weights));
        images.iter().try_for_each(|image| self.board.image(step, image))
    }

    fn keep_best(&self, run: &Run, training: &Training<S>) -> Result<(), RunError> {
        let Some(best) = training.best() else { return Ok(()) };
        let results = vec![(format!("{}.validation", S::WATCHED), best.regret)];
        let about = policy::about(run.settings(), training.subject(), best.step, results);
        policy::write(&run.best(), best.weights.clone(), about).map(drop)
    }
}
