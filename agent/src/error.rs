//! What can go wrong with a training, for what is learned and for whoever trains it.

use dynamiccl_env::cluster::ClusterError;
use dynamiccl_env::gym::EnvError;
use thiserror::Error;

use crate::learn::MissingDevice;

/// Why training cannot go on.
#[derive(Debug, Error)]
pub enum TrainError {
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A machine failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The device is not here.
    #[error(transparent)]
    Device(#[from] MissingDevice),
    /// What a curriculum's file says about the agent is nothing that can be said.
    #[error("{file}: agent: {why}")]
    Agent {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// What was saved does not fit.
    #[error("the checkpoint does not fit this run: {0}; resume it with the configuration it was made with")]
    Snapshot(&'static str),
}
