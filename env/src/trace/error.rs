//! Every way in which a recorded job can be unreadable, with its place, the value and the remedy.

use std::path::Path;

use crate::measure::Fault;

/// Why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("{}: cannot be read: {}", .0.at(), .0)]
    Unreadable(Fault),
    /// Nothing in it.
    #[error("{}: holds no calls: {}", .0.at(), .0)]
    Empty(Fault),
    /// Its first line belongs to no format that we know.
    #[error("{}: is no trace: {}", .0.at(), .0)]
    NotATrace(Fault),
    /// A format of another version.
    #[error("{}: unknown format version {}", .0.at(), .0)]
    Version(Fault),
    /// A line longer than any that means something.
    #[error("{}: the line is too long: {}", .0.at(), .0)]
    LongLine(Fault),
    /// More calls than fit into memory with certainty.
    #[error("{}: has too many calls: {}", .0.at(), .0)]
    TooManyCalls(Fault),
    /// Bytes that are no text.
    #[error("{}: is no UTF-8: {}", .0.at(), .0)]
    NotText(Fault),
    /// Text that is no JSON object.
    #[error("{}: is no JSON object: {}", .0.at(), .0)]
    NotJson(Fault),
    /// A key that means nothing here.
    #[error("{}: unknown key {}", .0.at(), .0)]
    UnknownKey(Fault),
    /// A key that is there twice.
    #[error("{}: repeats the key {}", .0.at(), .0)]
    RepeatedKey(Fault),
    /// A key that must be there is not.
    #[error("{}: lacks {}", .0.at(), .0)]
    MissingKey(Fault),
    /// A value that its key cannot have.
    #[error("{}: bad {key} {}", .at.at(), .at)]
    BadValue {
        /// The key.
        key: String,
        /// Where, what, and what to do.
        at: Fault,
    },
    /// A call in a communicator that the header does not name.
    #[error("{}: unknown communicator {}", .0.at(), .0)]
    UnknownCommunicator(Fault),
    /// Two communicators of one name.
    #[error("{}: repeats the communicator {}", .0.at(), .0)]
    RepeatedCommunicator(Fault),
    /// Two ranks tell different things about the same call or communicator.
    #[error("{}: contradicts an earlier line: {}", .0.at(), .0)]
    Contradiction(Fault),
}

impl TraceError {
    /// The place, value and remedy.
    pub fn fault(&self) -> &Fault {
        match self {
            TraceError::Unreadable(at)
            | TraceError::Empty(at)
            | TraceError::NotATrace(at)
            | TraceError::Version(at)
            | TraceError::LongLine(at)
            | TraceError::TooManyCalls(at)
            | TraceError::NotText(at)
            | TraceError::NotJson(at)
            | TraceError::UnknownKey(at)
            | TraceError::RepeatedKey(at)
            | TraceError::MissingKey(at)
            | TraceError::BadValue { at, .. }
            | TraceError::UnknownCommunicator(at)
            | TraceError::RepeatedCommunicator(at)
            | TraceError::Contradiction(at) => at,
        }
    }

    /// The operating system's refusal to read `file`.
    pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        TraceError::Unreadable(Fault::unreadable(file, error))
    }
}
