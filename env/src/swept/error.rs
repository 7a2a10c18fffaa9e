//! Why a sweep is no machine.

use std::path::PathBuf;

use thiserror::Error;

use crate::cluster::ClusterError;
use crate::measure::MeasureError;

/// Why a sweep is no machine.
#[derive(Debug, Error)]
pub enum SweptError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] MeasureError),
    /// Its machine cannot be described.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// It is another machine than the one that was named.
    #[error(
        "{}: {ranks} ranks do not fit cluster {cluster} ({gpus} GPUs per node); name the cluster that was measured",
        file.display()
    )]
    Ranks {
        /// The file.
        file: PathBuf,
        /// Its ranks.
        ranks: u32,
        /// The cluster.
        cluster: String,
        /// GPUs of one of its nodes.
        gpus: u32,
    },
    /// Nobody has named its machine, which is no shared GPU.
    #[error(
        "{}: its ranks had a GPU each; name the machine that was measured with --cluster, for instance dgx_h100",
        file.display()
    )]
    Machine {
        /// The file.
        file: PathBuf,
    },
    /// No cell says how NCCL's own choice compares with another.
    #[error(
        "{}: no call has both a line of NCCL's own choice (algo and proto \"default\") and one of a setting that NCCL \
         can run; measure both",
        file.display()
    )]
    Nothing {
        /// The file.
        file: PathBuf,
    },
}
