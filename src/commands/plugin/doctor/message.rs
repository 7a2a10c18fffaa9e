//! What ranks tell each other: one line of JSON there, one back.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::Job;

/// Tells our lines from those of whoever else comes by, and versions of ours from each other: it grows with what ranks say.
pub const MARK: &str = "dynamiccl doctor 2";
/// No line of ours is longer.
const LONGEST: u64 = 1 << 20;

/// What a rank found. Its checkup is of its own version, and is read only where that is ours.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found<C = Value> {
    /// [`MARK`].
    pub mark: String,
    /// The job that it belongs to, as far as it knows; version 1 did not say.
    #[serde(default)]
    pub job: Job,
    /// How many ranks it believes there are.
    pub ranks: u32,
    /// What it found.
    pub checkup: C,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All ranks would do the same.
    Agree,
    /// They would not, or one would not run.
    Differ,
    /// It could not be found out.
    Failed(String),
}

/// Writes a line.
pub fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(message).map_err(io::Error::other)?;
    line.push('\n');
    to.write_all(line.as_bytes())?;
    to.flush()
}

/// Reads a line.
pub fn receive<M: DeserializeOwned>(from: impl Read) -> io::Result<M> {
    let mut line = Vec::new();
    BufReader::new(from.take(LONGEST)).read_until(b'\n', &mut line)?;
    serde_json::from_slice(&line).map_err(io::Error::other)
}
