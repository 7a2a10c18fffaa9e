//! Every way in which a curriculum can be wrong.

use std::io;

use dynamiccl_spec::words::UnknownWord;
use thiserror::Error;

use crate::cluster::ClusterError;
use crate::workload::WorkloadError;

/// A curriculum that cannot be used.
#[derive(Debug, Error)]
pub enum CurriculumError {
    /// No such curriculum.
    #[error("{0}; or give a file ending in .toml")]
    Name(UnknownWord),
    /// It is about something that there is not.
    #[error("{file}: {error}")]
    Kind {
        /// The file.
        file: String,
        /// Why.
        error: UnknownWord,
    },
    /// The file cannot be read.
    #[error("{file}: {error}; give a readable curriculum file")]
    Read {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// It is not TOML, or not of the schema.
    #[error("{file}:{line}: {message} (curricula/README.md has the schema)")]
    Parse {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A value that makes no sense.
    #[error("{file}: {key} = {value}: {remedy}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What would be right.
        remedy: String,
    },
    /// A cluster that cannot be used.
    #[error("{file}: {error}")]
    Cluster {
        /// The file.
        file: String,
        /// Why.
        error: Box<ClusterError>,
    },
    /// A model that cannot be used.
    #[error("{file}: {error}")]
    Model {
        /// The file.
        file: String,
        /// Why.
        error: WorkloadError,
    },
    /// No job fits what the stage states.
    #[error(
        "{file}: no job fits: {why}; add a kind of parallelism or a model that does, or other node counts"
    )]
    NoJob {
        /// The file.
        file: String,
        /// What was tried.
        why: String,
    },
}

impl CurriculumError {
    pub(crate) fn value(file: &str, key: &str, value: &str, remedy: &str) -> Self {
        CurriculumError::Value {
            file: file.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    pub(crate) fn parse(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(""));
        let line = 1 + before.matches('\n').count();
        CurriculumError::Parse { file: file.to_owned(), line, message: error.message().replace('\n', " ") }
    }
}
