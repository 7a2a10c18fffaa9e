//! The folder of a run: what it was told, what was measured, checkpoints and policies; whole whatever
//! happens, and enough to go on where a run was ended.
//!
//! Nothing here trains or prints. A trainer's state is opaque: anything that can be written as CBOR.

pub mod board;
pub mod checkpoint;
pub mod clock;
pub mod error;
pub mod line;
mod lock;
mod metrics;
pub mod policy;
pub mod recorder;
pub mod settings;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use error::RunError;
pub use recorder::Recorder;
pub use settings::Settings;

use checkpoint::{Broken, Saved};
use clock::Utc;
use dynamiccl_env::{text, whole};
use lock::Lock;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The file that says what a run was told.
pub const SETTINGS: &str = "config.toml";
/// The file of its lines.
pub const METRICS: &str = "metrics.jsonl";
/// The folder of TensorBoard's event files.
pub const BOARD: &str = "tb";
/// The folder of its checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
/// The best policy so far, among the checkpoints.
pub const BEST: &str = "best.safetensors";
/// The policy that it leaves behind.
pub const POLICY: &str = "policy.safetensors";
/// What that policy is worth.
pub const EVAL: &str = "eval.json";
/// What gradients are worked out on where nobody says.
pub const USUAL_DEVICE: &str = "flex";
/// Checkpoints that are kept.
const KEEP: usize = 3;

/// A run that this process, and no other, writes.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    settings: Settings,
    _lock: Lock,
}

/// A run that is gone on with.
#[derive(Debug)]
pub struct Resumed<S> {
    /// The newest checkpoint that is whole.
    pub saved: Saved<S>,
    /// Newer ones that are not. They are put aside under another name.
    pub broken: Vec<Broken>,
}

impl Run {
    /// Makes the folder of a run that begins: `out/<curriculum>__s<seed>__<utc>`.
    pub fn begin(out: &Path, settings: Settings, now: Utc) -> Result<Self, RunError> {
        let stem = Path::new(&settings.curriculum).file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{stem}__s{}__{}", settings.seed, now.compact());
        fs::create_dir_all(out).map_err(RunError::begin(out))?;
        let folder = make_folder(out, &name)?;
        let inside = folder.join(CHECKPOINTS);
        fs::create_dir(&inside).map_err(RunError::begin(&inside))?;
        let run = Run { _lock: Lock::take(&folder)?, folder, settings };
        run.write(SETTINGS, run.settings.to_toml().as_bytes())?;
        Ok(run)
    }

    /// Takes up the run of a folder. What a killed process has left half-written is removed.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(SETTINGS);
        let text = text::read(&path).map_err(|why| match why.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => RunError::NoRun { path: folder.to_owned() },
            _ => RunError::Read { path: path.clone(), why },
        })?;
        let settings = Settings::from_toml(&path, &text)?;
        let run = Run { _lock: Lock::take(folder)?, folder: folder.to_owned(), settings };
        for folder in [run.folder.clone(), run.path(CHECKPOINTS)] {
            whole::sweep(&folder).map_err(RunError::write(&folder))?;
        }
        Ok(run)
    }

    /// The run of a folder that was begun last.
    pub fn latest(out: &Path) -> Result<PathBuf, RunError> {
        let entries = fs::read_dir(out).map_err(RunError::read(out))?;
        let mut runs: Vec<(String, Result<PathBuf, RunError>)> = Vec::new();
        for entry in entries {
            let folder = entry.map_err(RunError::read(out))?.path();
            let file = folder.join(SETTINGS);
            let Ok(text) = text::read(&file) else { continue };
            // What a run of another build says may mean nothing here; its folder still says when it began.
            let (started, known) = match Settings::from_toml(&file, &text) {
                Ok(settings) => (settings.started.replace(['-', ':'], ""), Ok(folder)),
                Err(why) => (begun(&folder), Err(why)),
            };
            runs.push((started, known));
        }
        let newest = runs.into_iter().max_by(|(a, _), (b, _)| a.cmp(b));
        newest.map_or(Err(RunError::NoRuns { path: out.to_owned() }), |(_, run)| run)
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells it something else from now on.
    pub fn change(&mut self, settings: Settings) -> Result<(), RunError> {
        self.write(SETTINGS, settings.to_toml().as_bytes())?;
        self.settings = settings;
        Ok(())
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a file of it lies.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where its best policy so far lies.
    pub fn best(&self) -> PathBuf {
        self.path(CHECKPOINTS).join(BEST)
    }

    /// Writes a file of it, whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let path = self.path(name);
        whole::write(&path, bytes).map_err(RunError::write(&path))
    }

    /// Saves a state.
    pub fn save<S: Serialize>(&self, saved: &Saved<S>) -> Result<PathBuf, RunError> {
        checkpoint::write(&self.path(CHECKPOINTS), saved, KEEP)
    }

    /// Finds where to go on.
    pub fn resume<S: DeserializeOwned>(&self) -> Result<Resumed<S>, RunError> {
        let (saved, mut broken) = checkpoint::newest(&self.path(CHECKPOINTS))?;
        if let Some(at) = broken.iter().position(|broken| !broken.why.is_damage()) {
            let Broken { path, why } = broken.swap_remove(at);
            return Err(RunError::Checkpoint { path, why });
        }
        let Some(saved) = saved else {
            let found = broken.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let found = if found.is_empty() { "there is none".to_owned() } else { found };
            return Err(RunError::NoCheckpoint { path: self.folder.clone(), found });
        };
        for Broken { path, .. } in &broken {
            // Else it would count as the newest again.
            fs::rename(path, path.with_extension("ckpt.broken")).map_err(RunError::write(path))?;
        }
        Ok(Resumed { saved, broken })
    }
}

/// The policy of a run: the one that it left behind, or the best so far of one that is not done.
pub fn policy_of(folder: &Path) -> Result<PathBuf, RunError> {
    if !folder.join(SETTINGS).is_file() {
        return Err(RunError::NoRun { path: folder.to_owned() });
    }
    let files = [folder.join(POLICY), folder.join(CHECKPOINTS).join(BEST)];
    files.into_iter().find(|file| file.is_file()).ok_or(RunError::NoPolicy { path: folder.to_owned() })
}

/// When a run began, by the name of its folder.
fn begun(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit("__").next().unwrap_or_default().to_owned()
}

/// Makes a folder that was not there; a second run of the same second gets a number.
fn make_folder(out: &Path, name: &str) -> Result<PathBuf, RunError> {
    let names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
    for name in names {
        let folder = out.join(name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // Its name is on the disk before anything in it is.
            made => {
                let made = made.and_then(|()| fs::File::open(out)?.sync_all());
                return made.map(|()| folder.clone()).map_err(RunError::begin(&folder));
            }
        }
    }
    unreachable!("there is always another number")
}
