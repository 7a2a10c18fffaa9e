//! Before the first step: a run is begun, or taken up where it was left. Everything that can fail cheaply
//! fails here.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, ensure};
use dynamiccl_agent::Config;
use dynamiccl_agent::learn::Device;
use dynamiccl_agent::run::clock::Utc;
use dynamiccl_agent::run::recorder::Before;
use dynamiccl_agent::run::{Recorder, Run, Settings, settings as kept};
use dynamiccl_agent::training::{Setup, Snapshot, Training};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_synth::library::Library;

use super::{Job, finish, settings};
use crate::args::TrainArgs;
use crate::session::Session;

/// The run that the words ask for.
pub fn start(args: &TrainArgs, session: &Session) -> Result<Job> {
    match args.resume.as_deref() {
        None => begin(args, session),
        Some(word) if word == Path::new("latest") => resume(&Run::latest(&args.out)?, args, session),
        Some(folder) => resume(folder, args, session),
    }
}

fn begin(args: &TrainArgs, session: &Session) -> Result<Job> {
    let name = args.curriculum.as_deref().context("no curriculum: give --curriculum NAME|FILE")?;
    let curriculum = Curriculum::load(name)?;
    let now = Utc::now();
    let settings = Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: now.to_string(),
        curriculum: name.to_owned(),
        seed: session.seed,
        steps: args.steps,
        constants: args.constants.clone().unwrap_or_else(kept::usual_constants),
        device: args.device.unwrap_or_default().to_string(),
        config: settings::config(args, Config::default())?,
        stages: kept::stages(&curriculum),
    };
    let training = Training::new(setup(args, &settings, curriculum)?)?;
    let run = Run::begin(&args.out, settings, now)?;
    let recorder = Recorder::new(&run, training.stages(), Before::default())?;
    let mut job = Job { run, training, recorder };
    // Whatever happens from now on, there is something to go on with.
    job.save()?;
    Ok(job)
}

fn resume(folder: &Path, args: &TrainArgs, session: &Session) -> Result<Job> {
    let mut run = Run::open(folder)?;
    let old = run.settings().clone();
    let name = args.curriculum.as_deref().unwrap_or(&old.curriculum);
    let curriculum = Curriculum::load(name)?;
    let new = Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: old.started.clone(),
        curriculum: name.to_owned(),
        seed: if session.seed_given { session.seed } else { old.seed },
        steps: args.steps.or(old.steps),
        constants: args.constants.clone().unwrap_or_else(|| old.constants.clone()),
        device: args.device.map_or_else(|| old.device.clone(), |device| device.to_string()),
        config: settings::config(args, old.config.clone())?,
        stages: kept::stages(&curriculum),
    };
    let changes: Vec<String> = old.changes(&new).iter().map(ToString::to_string).collect();
    ensure!(
        changes.is_empty() || args.overrides,
        "--resume {}: these are not the run's settings: {}; leave them as they were, or give --override",
        folder.display(),
        changes.join("; ")
    );
    let setup = setup(args, &new, curriculum)?;
    let resumed = run.resume::<Snapshot>()?;
    for broken in &resumed.broken {
        session.output.note(format_args!("{broken}; going on from an older one"));
    }
    let before = Before::from(&resumed.saved);
    let training = Training::resume(setup, resumed.saved.snapshot)?;
    if !changes.is_empty() {
        changes.iter().for_each(|change| session.output.note(format_args!("override: {change}")));
        run.change(new)?;
    }
    let recorder = Recorder::new(&run, training.stages(), before)?;
    Ok(Job { run, training, recorder })
}

fn setup(args: &TrainArgs, settings: &Settings, curriculum: Curriculum) -> Result<Setup> {
    settings.config.check()?;
    finish::check(&curriculum.stages, args)?;
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get());
    Ok(Setup {
        curriculum,
        config: settings.config.clone(),
        seed: settings.seed,
        threads: args.threads.map_or_else(cores, usize::from),
        device: settings.device.parse::<Device>()?,
        constants: Arc::new(ConstantsFile::load(&settings.constants)?),
        schedules: Some(Arc::new(Library::new())),
    })
}
