//! Checkpoints: everything that a run needs to go on as if nothing had happened, in one file.
//!
//! A file is a magic word, a version, the length and fingerprint of its content, and the content as CBOR.
//! Reading is total: whatever is in the file, the answer is a checkpoint or the reason why it is none. What
//! a snapshot holds is the trainer's business.

use std::fs;
use std::path::{Path, PathBuf};

use dynamiccl_env::whole;
use dynamiccl_spec::fnv::Fnv;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::board::EventFile;
use super::error::RunError;
use crate::subject::ByPlace;

/// The word with which every checkpoint begins.
const MAGIC: [u8; 8] = *b"DYNICKPT";
/// The form of the content.
const VERSION: u32 = 1;
/// Bytes before the content: magic, version, length, fingerprint.
const HEADER: usize = 8 + 4 + 8 + 8;
/// What the name of a checkpoint begins with, and ends in.
const NAME: [&str; 2] = ["step-", ".ckpt"];

/// What a checkpoint holds: the trainer's state, and how far the files beside it had come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved<S> {
    /// Steps of the run.
    pub step: u64,
    /// Lines of the metrics.
    pub lines: u64,
    /// TensorBoard's files, with their bytes.
    pub events: Vec<EventFile>,
    /// Seconds that the run has taken.
    pub seconds: f64,
    /// The watched figure when the policy was judged last.
    #[serde(rename = "regret")]
    pub watched: ByPlace,
    /// The state of the trainer.
    pub snapshot: S,
}

/// A checkpoint that is not whole.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct Broken {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: CheckpointError,
}

/// Why a file is no checkpoint that this build can go on from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// It is something else.
    #[error("it is no checkpoint: it does not begin with the word of one")]
    Foreign,
    /// Another form.
    #[error(
        "it is a checkpoint of form {found}, this build knows {VERSION}; use the dynamiccl that wrote it"
    )]
    Version {
        /// The form that it has.
        found: u32,
    },
    /// It ends early, or goes on.
    #[error("it has {found} bytes and should have {expected}: it is incomplete or something was appended")]
    Length {
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have.
        expected: u64,
    },
    /// Something was changed since it was written.
    #[error("its content has the fingerprint {found:016x}, and says {stated:016x}: it was damaged")]
    Altered {
        /// What it says.
        stated: u64,
        /// What its content has.
        found: u64,
    },
    /// It cannot be written.
    #[error("it cannot be written: {0}")]
    Unwritable(String),
    /// Whole, and not what this build holds.
    #[error("its content is not what this build writes: {0}; use the dynamiccl that wrote it")]
    Content(String),
}

impl CheckpointError {
    /// Whether nobody can go on from the file: another build, or another user, might from the others.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Foreign | Self::Length { .. } | Self::Altered { .. })
    }
}

/// The bytes of a checkpoint.
pub fn encode<S: Serialize>(saved: &Saved<S>) -> Result<Vec<u8>, CheckpointError> {
    let mut bytes = vec![0; HEADER];
    ciborium::into_writer(saved, &mut bytes).map_err(|why| CheckpointError::Unwritable(why.to_string()))?;
    let content = &bytes[HEADER..];
    let (length, hash) = (content.len() as u64, fingerprint(content));
    let header = [&MAGIC[..], &VERSION.to_le_bytes(), &length.to_le_bytes(), &hash.to_le_bytes()].concat();
    bytes[..HEADER].copy_from_slice(&header);
    Ok(bytes)
}

/// The checkpoint that bytes are.
pub fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<Saved<S>, CheckpointError> {
    // An empty file is what a crash can leave of one: short, not foreign.
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return Err(CheckpointError::Foreign);
    }
    let (found, header) = (bytes.len() as u64, HEADER as u64);
    let Some((head, content)) = bytes.split_at_checked(HEADER) else {
        return Err(CheckpointError::Length { found, expected: header });
    };
    let number = |at: usize, width: usize| {
        head[at..at + width].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let (version, length, stated) = (number(8, 4) as u32, number(12, 8), number(20, 8));
    if version != VERSION {
        return Err(CheckpointError::Version { found: version });
    }
    if length != content.len() as u64 {
        return Err(CheckpointError::Length { found, expected: header.saturating_add(length) });
    }
    let found = fingerprint(content);
    if found != stated {
        return Err(CheckpointError::Altered { stated, found });
    }
    ciborium::from_reader(content).map_err(|why| CheckpointError::Content(why.to_string()))
}

fn fingerprint(content: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.bytes(content);
    hash.value()
}

/// Writes a checkpoint into a folder, whole or not at all, and then removes all but the last `keep`.
pub fn write<S: Serialize>(folder: &Path, saved: &Saved<S>, keep: usize) -> Result<PathBuf, RunError> {
    let path = folder.join(format!("{}{}{}", NAME[0], saved.step, NAME[1]));
    let bytes = encode(saved).map_err(|why| RunError::Checkpoint { path: path.clone(), why })?;
    whole::write(&path, &bytes).map_err(RunError::write(&path))?;
    for (_, old) in list(folder)?.into_iter().skip(keep) {
        fs::remove_file(&old).map_err(RunError::write(&old))?;
    }
    Ok(path)
}

/// Reads a checkpoint.
pub fn read<S: DeserializeOwned>(path: &Path) -> Result<Saved<S>, CheckpointError> {
    decode(&fs::read(path).map_err(CheckpointError::Unreadable)?)
}

/// The newest checkpoint of a folder that is whole, and those newer ones that are not.
pub fn newest<S: DeserializeOwned>(folder: &Path) -> Result<(Option<Saved<S>>, Vec<Broken>), RunError> {
    let mut broken = Vec::new();
    for (_, path) in list(folder)? {
        match read(&path) {
            Ok(saved) => return Ok((Some(saved), broken)),
            Err(why) => broken.push(Broken { path, why }),
        }
    }
    Ok((None, broken))
}

/// The checkpoints of a folder with their steps, newest first.
fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, RunError> {
    let entries = fs::read_dir(folder).map_err(RunError::read(folder))?;
    let step = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix(NAME[0])?.strip_suffix(NAME[1])?.parse::<u64>().ok()
    };
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry.map_err(RunError::read(folder))?.path();
        found.extend(step(&path).map(|step| (step, path)));
    }
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}
