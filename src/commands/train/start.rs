//! Before the first step: a run is begun, or taken up where it was left. Everything that can fail cheaply
//! fails here.

use std::path::Path;

use anyhow::{Context, Error, Result, ensure};
use dynamiccl_agent::learn::Device;
use dynamiccl_agent::run::clock::Utc;
use dynamiccl_agent::run::recorder::Before;
use dynamiccl_agent::run::settings::Change;
use dynamiccl_agent::run::{Recorder, Run, Settings};
use dynamiccl_agent::training::{PlaceOf, Setup, Snapshot, Training};
use dynamiccl_env::model::ConstantsFile;

use super::lesson::Lesson;
use super::{Job, settings};
use crate::args::TrainArgs;
use crate::session::{Session, cores};

/// What the words ask for: a run that is there, or none yet, and a curriculum.
pub struct Asked {
    run: Option<Run>,
    /// The curriculum, by name or file.
    pub curriculum: String,
}

impl Asked {
    /// Takes up the run that the words name.
    pub fn new(args: &TrainArgs) -> Result<Self> {
        let run = match args.resume.as_deref() {
            None => None,
            Some(word) if word == Path::new("latest") => Some(Run::open(&Run::latest(&args.out)?)?),
            Some(folder) => Some(Run::open(folder)?),
        };
        let old = run.as_ref().map(|run| run.settings().curriculum.clone());
        let curriculum = args.curriculum.clone().or(old);
        let curriculum = curriculum.context("no curriculum: give --curriculum NAME|FILE")?;
        Ok(Asked { run, curriculum })
    }
}

/// Begins a run, or goes on with it.
pub fn start<L: Lesson>(asked: Asked, args: &TrainArgs, session: &Session) -> Result<Job<L>> {
    let Asked { run, curriculum } = asked;
    match run {
        None => begin(curriculum, args, session),
        Some(run) => resume(run, curriculum, args, session),
    }
}

fn begin<L: Lesson>(curriculum: String, args: &TrainArgs, session: &Session) -> Result<Job<L>> {
    let constants = args.constants.clone().unwrap_or_else(|| ConstantsFile::USUAL.to_owned());
    let subject = L::load(&curriculum, &constants)?;
    let now = Utc::now()?;
    let settings = Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: now.to_string(),
        curriculum,
        seed: session.seed,
        steps: args.steps,
        constants,
        device: args.device.unwrap_or_default().to_string(),
        config: settings::config(args, subject.usual())?,
        stages: subject.settings(),
    };
    let training = Training::new(setup(args, &settings, subject)?)?;
    let run = Run::begin(&args.out, settings, now)?;
    let recorder = Recorder::new(&run, training.stages(), Before::default())?;
    let mut job = Job { run, training, recorder };
    // Whatever happens from now on, there is something to go on with.
    job.save()?;
    Ok(job)
}

/// An error where a run would go on with settings that are not its own: some never, the others unless it is meant.
fn refuse_changes(changes: &[Change], args: &TrainArgs) -> Result<()> {
    let said = |changes: &mut dyn Iterator<Item = &Change>| {
        changes.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let fixed = said(&mut changes.iter().filter(|change| change.is_final()));
    ensure!(
        fixed.is_empty(),
        "{fixed}; a run keeps its network, its environments and what it is without: begin another one"
    );
    ensure!(
        changes.is_empty() || args.overrides,
        "these are not the run's settings: {}; leave them as they were, or give --override",
        said(&mut changes.iter())
    );
    Ok(())
}

fn resume<L: Lesson>(
    mut run: Run,
    curriculum: String,
    args: &TrainArgs,
    session: &Session,
) -> Result<Job<L>> {
    let old = run.settings().clone();
    let constants = args.constants.clone().unwrap_or_else(|| old.constants.clone());
    let subject = L::load(&curriculum, &constants)?;
    let new = Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: old.started.clone(),
        curriculum,
        seed: if session.seed_given { session.seed } else { old.seed },
        steps: args.steps.or(old.steps),
        constants,
        device: args.device.map_or_else(|| old.device.clone(), |device| device.to_string()),
        config: settings::config(args, old.config.clone())?,
        stages: subject.settings(),
    };
    let changes = old.changes(&new);
    refuse_changes(&changes, args).with_context(|| format!("--resume {}", run.folder().display()))?;
    let setup = setup(args, &new, subject)?;
    let resumed = run.resume::<Snapshot<PlaceOf<L>>>()?;
    for broken in &resumed.broken {
        session.output.note(format_args!("{broken}; going on from an older one"));
    }
    let before = Before::from(&resumed.saved);
    let mut training = Training::resume(setup, resumed.saved.snapshot)?;
    changes.iter().for_each(|change| session.output.note(format_args!("override: {change}")));
    let otherwise = changes.iter().any(Change::is_of_judgement);
    if otherwise {
        let interrupt = session.interrupt();
        training.judge_best_anew(|| interrupt.check().map_err(Error::from))?;
    }
    if !changes.is_empty() {
        run.change(new)?;
    }
    let recorder = Recorder::new(&run, training.stages(), before)?;
    let mut job = Job { run, training, recorder };
    if otherwise {
        // Else a run that is killed now would go on with what the former judgement found.
        job.save()?;
    }
    Ok(job)
}

fn setup<L: Lesson>(args: &TrainArgs, settings: &Settings, subject: L) -> Result<Setup<L>> {
    settings.config.check()?;
    subject.check(args)?;
    Ok(Setup {
        subject,
        config: settings.config.clone(),
        seed: settings.seed,
        threads: args.threads.map_or_else(cores, usize::from),
        device: settings.device.parse::<Device>()?,
    })
}
