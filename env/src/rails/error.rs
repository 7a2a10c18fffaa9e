//! Everything that can be wrong with a job over photonic rails, each with the value and the remedy.

use thiserror::Error;

use crate::workload::WorkloadError;

/// Why a job cannot run over photonic rails.
#[derive(Debug, Error)]
pub enum RailsError {
    /// The job itself cannot be.
    #[error("{0}")]
    Workload(#[from] WorkloadError),
    /// A number of the network or of the job's timing that cannot be.
    #[error("{what} = {value}: {remedy}")]
    Value {
        /// What was given.
        what: String,
        /// Its value.
        value: String,
        /// What to give instead.
        remedy: String,
    },
    /// A file that cannot be read.
    #[error("{file}: {why} (curricula/README.md has the schema)")]
    File {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

impl RailsError {
    pub(super) fn value(what: &str, value: impl ToString, remedy: impl ToString) -> Self {
        RailsError::Value { what: what.to_owned(), value: value.to_string(), remedy: remedy.to_string() }
    }
}
