//! The deployment file: what a user knows of the job that NCCL does not say.
//!
//! Every rank reads the same file, so all of them tell the policy the same, and a process reads it once for all
//! communicators that live at the same time. What it does not say stays unknown. It knows neither NCCL nor a policy.

mod file;
mod launch;
mod rule;
mod schedule;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dynamiccl_spec::fnv::Fnv;
use dynamiccl_spec::{CclLibrary, JobContext, NetLink, NodeLink, Topology, tiers};

use crate::kept::Kept;
use file::Document;
pub use launch::Launch;
pub use schedule::Schedules;

/// No deployment file is longer.
const MOST: u64 = 1 << 20;

/// The deployments in use.
static KEPT: Kept<PathBuf, Deployment> = Kept::new();

/// What is known of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deployment {
    document: Document,
    /// The fingerprint of the file; none without one.
    hash: Option<u64>,
}

/// Why a file is no deployment.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// It cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        why: std::io::Error,
    },
    /// It says what means nothing.
    #[error("{path}: {why}")]
    Wrong {
        /// The file.
        path: String,
        /// What is wrong, and where.
        why: String,
    },
}

/// Forgets the deployments that nobody uses.
pub fn forget_unused() {
    KEPT.forget_unused();
}

impl Deployment {
    /// The deployment of a communicator: that of those which live, or the file.
    pub fn kept(path: &Path) -> Result<Arc<Self>, DeploymentError> {
        KEPT.get(path.to_owned(), || Deployment::open(path))
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, DeploymentError> {
        let name = || path.display().to_string();
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
        read.map_err(|why| DeploymentError::Unreadable { path: name(), why })?;
        Deployment::read(&bytes).map_err(|why| DeploymentError::Wrong { path: name(), why })
    }

    /// Reads a file that is in memory.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MOST {
            return Err(format!("longer than {} KiB, which no deployment file is", MOST >> 10));
        }
        if bytes.is_empty() {
            return Err("empty; leave DYNAMICCL_CONTEXT away where nothing is known of the job".to_owned());
        }
        let text = std::str::from_utf8(bytes).map_err(|error| format!("no text: {error}"))?;
        let mut hash = Fnv::new();
        hash.bytes(bytes);
        Ok(Deployment { document: Document::read(text)?, hash: Some(hash.value()) })
    }

    /// The fingerprint of the file; none without one.
    pub fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// What it leaves out of a section that it has: policies are trained to be told all of one, or nothing.
    pub fn left_out(&self) -> Vec<&'static str> {
        self.document.left_out().collect()
    }

    /// What NCCL shall read once per process.
    pub fn launch(&self) -> &Launch {
        &self.document.launch
    }

    /// What synthesised schedules would take on a communicator of this size.
    pub fn schedules(&self, ranks: u32, nodes: u32) -> Schedules {
        let stated = self.document.schedule.iter();
        Schedules::new(stated.filter(|schedule| schedule.matches(ranks, nodes)).copied())
    }

    /// What is known of a communicator of this size.
    pub fn context(&self, ranks: u32, nodes: u32) -> JobContext {
        let Document { workload, scheduler, llm, .. } = self.document;
        let topology = self.topology(ranks, nodes);
        let mut context = JobContext { topology, workload, scheduler, llm };
        if let Some(rule) = self.document.communicator.iter().find(|rule| rule.matches(ranks, nodes)) {
            rule.apply(&mut context);
        }
        context
    }

    /// Where such a communicator lies in the cluster, as training tells it.
    fn topology(&self, ranks: u32, nodes: u32) -> Topology {
        let cluster = &self.document.cluster;
        let steps = cluster.tiers.iter().map(|from| (from.nodes, from.tier));
        let mix = || {
            steps.clone().next()?;
            let inside = tiers::inside(steps.clone(), cluster.intra)?;
            let mix = tiers::mix(steps.clone(), inside, nodes, ranks.div_ceil(nodes.max(1)));
            Some(mix.map(|share| share as f32))
        };
        let said = |link: NodeLink| link != NodeLink::Unknown && ranks <= nodes;
        let intra = if said(cluster.intra) { NodeLink::None } else { cluster.intra };
        let inter = match cluster.inter {
            said if said == NetLink::Unknown || nodes > 1 => said,
            _ => NetLink::inside(intra, ranks),
        };
        Topology {
            ranks,
            nodes,
            gpu: cluster.gpu,
            intra,
            intra_generation: cluster.intra_generation,
            inter,
            class: cluster.class,
            tier_max: tiers::tier(steps.clone(), nodes),
            tier_mix: mix(),
            in_network: cluster.in_network.map(|active| active && nodes > 1),
            // Only NCCL asks a tuner, and training says so wherever it describes a machine.
            library: match cluster.library {
                CclLibrary::Unknown if cluster.is_described() => CclLibrary::Nccl,
                said => said,
            },
        }
    }
}

#[cfg(test)]
mod tests;
