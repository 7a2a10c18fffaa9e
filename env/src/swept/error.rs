//! Why a sweep is no machine.

use std::path::PathBuf;

use thiserror::Error;

use crate::cluster::ClusterError;
use crate::measure::MeasureError;
use crate::measure::sweep::{About, Link};

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
    /// It is said how its ranks lay, and so they cannot lie on the machine that was named.
    #[error(
        "{}: its {ranks} ranks were on {nodes} nodes with {ranks_per_node} each, which cluster {cluster} ({gpus} GPUs per \
         node) cannot hold; name the cluster that was measured, with equally many ranks on every node",
        file.display()
    )]
    Layout {
        /// The file.
        file: PathBuf,
        /// Its ranks.
        ranks: u32,
        /// The nodes that they were on.
        nodes: u32,
        /// Their ranks on each.
        ranks_per_node: u32,
        /// The cluster.
        cluster: String,
        /// GPUs of one of its nodes.
        gpus: u32,
    },
    /// Its ranks shared a GPU, and the machine that was named gives each its own.
    #[error(
        "{}: ranks that share a GPU are hosts of their own to NCCL, but cluster {cluster} has {gpus} GPUs per node; leave \
         the cluster out, or name one with one GPU per node, such as one calibrated from h200_shared",
        file.display()
    )]
    Shared {
        /// The file.
        file: PathBuf,
        /// The cluster.
        cluster: String,
        /// GPUs of one of its nodes.
        gpus: u32,
    },
    /// The same, of which only its link says that they shared one.
    #[error(
        "{}: link {link} is one of ranks that share a GPU, each a host of its own to NCCL, but cluster {cluster} has {gpus} \
         GPUs per node; leave the cluster out, or name one with one GPU per node; where each rank had a GPU, write \
         {{\"shared\": false}} into {}",
        file.display(),
        About::path(file).display()
    )]
    Linked {
        /// The file.
        file: PathBuf,
        /// Its link.
        link: Link,
        /// The cluster.
        cluster: String,
        /// GPUs of one of its nodes.
        gpus: u32,
    },
    /// What is said to have been its NCCL is no release.
    #[error(
        "{}: \"{stated}\" is no release of NCCL; give one such as 2.28.9 as nccl in the .about.json beside it",
        file.display()
    )]
    Release {
        /// The file.
        file: PathBuf,
        /// What was said.
        stated: String,
    },
    /// Nobody has named its machine, which is no shared GPU.
    #[error(
        "{}: its ranks had a GPU each; name the machine that was measured, for instance --cluster dgx_h100 (of eval: --clusters)",
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
