//! Every way in which the folder of a run can be wrong: what was found, where, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run cannot be begun, gone on with, or written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Something cannot be read.
    #[error("{}: cannot be read: {why}", path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// Something cannot be written.
    #[error("cannot write {}: {why}; make room, or check the folder, and resume the run", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The folder of a run that begins cannot be made.
    #[error("cannot make {}: {why}; give --out a folder that can be written to", path.display())]
    Begin {
        /// What.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// Another process is at it.
    #[error("{}: another process is writing this run; wait for it, or stop it first", path.display())]
    Busy {
        /// The run.
        path: PathBuf,
    },
    /// A folder without a configuration.
    #[error("{}: no run, it has no {}; give the folder that train named", path.display(), super::SETTINGS)]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// A folder without runs.
    #[error("{}: there is no run to go on with; begin one with --curriculum", path.display())]
    NoRuns {
        /// The folder.
        path: PathBuf,
    },
    /// A run that has left no policy yet.
    #[error("{}: this run has no policy yet; let it go on with --resume", path.display())]
    NoPolicy {
        /// The run.
        path: PathBuf,
    },
    /// The configuration is none.
    #[error("{}: {why}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No checkpoint is whole.
    #[error("{}: no checkpoint of this run is whole ({found}); begin it again", path.display())]
    NoCheckpoint {
        /// The run.
        path: PathBuf,
        /// What there is instead.
        found: String,
    },
    /// What is to be saved is nothing that can be.
    #[error("{}: {why}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: super::checkpoint::CheckpointError,
    },
    /// The policy that would be written cannot be read.
    #[error("{}: what would be written cannot be read: {why}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: dynamiccl_policies::frozen::FrozenError,
    },
}

impl RunError {
    /// For what cannot be read at a place.
    pub fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |why| RunError::Read { path: path.to_owned(), why }
    }

    /// For what a run that begins cannot make.
    pub(super) fn begin(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |why| RunError::Begin { path: path.to_owned(), why }
    }

    /// For what cannot be written at a place.
    pub fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |why| RunError::Write { path: path.to_owned(), why }
    }
}
