//! Why a worker cannot do what it was asked to.

use std::io;

use dynamiccl_gpu::GpuError;
use dynamiccl_host::OpenError;

/// Why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A variable is missing.
    #[error("{0} is not set: a worker is started by `live sweep` or `live eval`, not by hand")]
    Unset(&'static str),
    /// A variable is no number.
    #[error("{0}={1}: not a whole number")]
    Number(&'static str, String),
    /// There is no coordinator.
    #[error("{0}: the coordinator cannot be reached: {1}")]
    Unreachable(String, io::Error),
    /// Who is there does not know the secret.
    #[error("{0}: who listens there is not the coordinator of this run; is another one at the same port?")]
    Impostor(String),
    /// CUDA or NCCL refuses.
    #[error("{0}")]
    Gpu(#[from] GpuError),
    /// The plugin refuses.
    #[error("the plugin {0}: {1}")]
    Plugin(String, OpenError),
    /// NCCL has not asked the plugin.
    #[error(
        "NCCL did not ask the plugin {0} about {1}: it did not load it (its log says why), or another tuner is named"
    )]
    NotAsked(String, String),
    /// A request came before what it needs.
    #[error("a request came out of order: {0} is not there yet")]
    OutOfOrder(&'static str),
    /// What ranks find each other by was mutilated.
    #[error("the communicator's id has {0} digits, not 256")]
    Id(usize),
}

impl WorkerError {
    /// Whether another rank may be at fault.
    pub fn is_remote(&self) -> bool {
        matches!(self, WorkerError::Gpu(error) if error.is_remote())
    }
}
