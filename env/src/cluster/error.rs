//! Everything that can be wrong with a cluster, each with its place and its remedy.

use dynamiccl_spec::words::UnknownWord;
use thiserror::Error;

/// Why a cluster cannot be used.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// No built-in cluster has this name.
    #[error("{0}; or give a path ending in .toml")]
    Unknown(UnknownWord),
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The path that was given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a cluster: bad TOML, an unknown, missing or mistyped key.
    #[error("{file}: {source}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, column, the key and what was expected.
        source: Box<toml::de::Error>,
    },
    /// A value that no cluster can have.
    #[error("{file}: {key} = {value}: {remedy}")]
    Value {
        /// The file.
        file: String,
        /// The key, with the sections above it.
        key: String,
        /// What was read.
        value: String,
        /// What to write instead.
        remedy: String,
    },
    /// The cluster cannot be written.
    #[error("cluster {cluster}: cannot be written as TOML: {source}")]
    Write {
        /// The cluster.
        cluster: String,
        /// What the writer said.
        source: Box<toml::ser::Error>,
    },
    /// This communicator cannot exist on this cluster.
    #[error("cluster {cluster}: {wanted}: {remedy}")]
    Communicator {
        /// The cluster.
        cluster: String,
        /// What was asked for.
        wanted: String,
        /// What to ask for instead.
        remedy: String,
    },
}
