//! How a measurement file can be wrong, always with the place, the value and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Characters of a value that an error message shows.
const SHOWN: usize = 80;

/// Where a file is wrong, what was read there, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; 0 where the fault is the whole file's.
    pub line: u64,
    /// What was read, shortened and without control characters.
    pub value: String,
    /// What to do about it.
    pub remedy: String,
}

impl Fault {
    /// A fault at a line of a file; 0 is the whole file.
    pub fn new(file: &Path, line: u64, value: impl AsRef<str>, remedy: impl Into<String>) -> Self {
        let value = value.as_ref().trim();
        let mut shown: String =
            value.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if value.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        Fault { file: file.to_owned(), line, value: shown, remedy: remedy.into() }
    }

    /// The operating system's refusal to read `file`.
    pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => "check the path",
            std::io::ErrorKind::PermissionDenied => "make it readable for this user",
            _ => "name a readable file",
        };
        Fault::new(file, 0, error.to_string(), remedy)
    }

    /// The place, as `file:line`.
    pub(crate) fn at(&self) -> String {
        let file = self.file.display();
        if self.line == 0 { format!("{file}") } else { format!("{file}:{}", self.line) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"; {}", self.value, self.remedy)
    }
}

/// A file of measurements that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// The operating system refused.
    #[error("{}: cannot be read: {}", .0.at(), .0)]
    Unreadable(Fault),
    /// More than a measurement file can sensibly hold.
    #[error("{}: is too large: {}", .0.at(), .0)]
    TooLarge(Fault),
    /// Nothing in it looks like measurements.
    #[error("{}: holds no measurements: {}", .0.at(), .0)]
    NoRows(Fault),
    /// It ends, or breaks off, in the middle of something.
    #[error("{}: is cut off at {}", .0.at(), .0)]
    Truncated(Fault),
    /// A cell, field or line that cannot mean what its place says.
    #[error("{}: bad {what} {}", .at.at(), .at)]
    Bad {
        /// The column or field.
        what: String,
        /// Where, what, and what to do.
        at: Fault,
    },
    /// Columns or fields that must be there are not.
    #[error("{}: lacks {}", .0.at(), .0)]
    Missing(Fault),
    /// Nothing says which collective was measured.
    #[error("{}: does not say which collective it measured: {}", .0.at(), .0)]
    WhichCollective(Fault),
    /// Runs that do not belong together.
    #[error("{}: mixes several runs: {}", .0.at(), .0)]
    Mixed(Fault),
}

impl MeasureError {
    /// The place, value and remedy.
    pub fn fault(&self) -> &Fault {
        match self {
            MeasureError::Unreadable(at)
            | MeasureError::TooLarge(at)
            | MeasureError::NoRows(at)
            | MeasureError::Truncated(at)
            | MeasureError::Missing(at)
            | MeasureError::WhichCollective(at)
            | MeasureError::Mixed(at)
            | MeasureError::Bad { at, .. } => at,
        }
    }

    /// The operating system's refusal to read `file`.
    pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        MeasureError::Unreadable(Fault::unreadable(file, error))
    }
}
