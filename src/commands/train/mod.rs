//! `train`: learns a curriculum, writes the run down, and leaves a policy that was judged.

mod finish;
mod lesson;
mod report;
pub(super) mod settings;
mod start;
mod watch;

use std::path::Path;
use std::time::Instant;

use anyhow::{Error, Result};
use dynamiccl_agent::run::settings::shell;
use dynamiccl_agent::run::{Recorder, Run};
use dynamiccl_agent::subject::{Knobs, Rails, Wan, kind_of};
use dynamiccl_agent::training::{Event, Training};
use dynamiccl_env::curriculum::Kind;

use crate::args::{Every, TrainArgs};
use crate::exit::Ending;
use crate::interrupt::Interrupted;
use crate::session::Session;
use lesson::Lesson;
use start::Asked;
use watch::Watch;

/// Makes the plan and carries it out: what is learned is the curriculum's to say.
pub fn run(args: &TrainArgs, session: &Session) -> Result<Ending> {
    let asked = Asked::new(args)?;
    match kind_of(&asked.curriculum)? {
        Kind::Knobs => learn::<Knobs>(asked, args, session),
        Kind::Wan => learn::<Wan>(asked, args, session),
        Kind::Rails => learn::<Rails>(asked, args, session),
    }
}

fn learn<L: Lesson>(asked: Asked, args: &TrainArgs, session: &Session) -> Result<Ending> {
    let mut job = start::start::<L>(asked, args, session)?;
    job.announce(session);
    let done = job.train(args, session).and_then(|()| finish::finish(&mut job, args, session));
    if done.as_ref().is_err_and(|error| error.is::<Interrupted>()) {
        session.output.note(format_args!("saved; go on with: {}", resume_line(job.run.folder(), args)));
    }
    done.map(|()| Ending::Done)
}

/// A run that is being trained.
struct Job<L: Lesson> {
    run: Run,
    training: Training<L>,
    recorder: Recorder<L>,
}

impl<L: Lesson> Job<L> {
    fn announce(&self, session: &Session) {
        let settings = self.run.settings();
        let (folder, from) = (self.run.folder().display(), self.training.steps());
        let from = if from == 0 { String::new() } else { format!(", from step {from}") };
        session
            .output
            .note(format_args!("{}, seed {}, run {folder}{from}", settings.curriculum, settings.seed));
    }

    /// Trains until the curriculum is through, the steps are done, or somebody wants it to stop.
    fn train(&mut self, args: &TrainArgs, session: &Session) -> Result<()> {
        let steps = self.run.settings().steps;
        let expected = |training: &Training<L>| training.planned_steps().min(steps.unwrap_or(u64::MAX));
        let progress = session.progress("train", expected(&self.training));
        progress.skip(self.training.steps());
        let mut watch = Watch::<L>::new(&self.training);
        let mut saved = Saved::now(self.training.steps());
        while steps.is_none_or(|steps| self.training.steps() < steps) {
            let before = self.training.steps();
            let stepped = self.training.step_while(|| progress.advance(0).map_err(Error::from));
            if stepped.as_ref().is_err_and(|error| error.is::<Interrupted>()) {
                self.save()?;
            }
            let event = stepped?;
            let line = self.recorder.record(&self.run, &self.training, &event)?;
            if let Some(line) = line.filter(|_| session.output.json) {
                session.output.line("train", self.run.settings().seed, &line)?;
            }
            watch.see(&event, &progress);
            progress.expect(expected(&self.training));
            let going_on = progress.advance(self.training.steps() - before);
            if going_on.is_err() || saved.is_old(args.checkpoint_every, self.training.steps()) {
                self.save()?;
                saved = Saved::now(self.training.steps());
            }
            going_on?;
            if matches!(event, Event::Done { .. }) {
                break;
            }
        }
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        let (step, snapshot) = (self.training.steps(), self.training.snapshot());
        Ok(self.recorder.save(&self.run, step, snapshot)?)
    }
}

/// When a run was saved last.
struct Saved {
    step: u64,
    at: Instant,
}

impl Saved {
    fn now(step: u64) -> Self {
        Saved { step, at: Instant::now() }
    }

    fn is_old(&self, every: Every, step: u64) -> bool {
        match every {
            Every::Steps(steps) => step - self.step >= steps,
            Every::Time(time) => self.at.elapsed() >= time,
        }
    }
}

/// The words that go on with a run.
fn resume_line(folder: &Path, args: &TrainArgs) -> String {
    let mut words = vec!["dynamiccl".to_owned(), "train".to_owned(), "--resume".to_owned()];
    words.push(folder.display().to_string());
    words.extend(args.of_judgement());
    shell(&words)
}
