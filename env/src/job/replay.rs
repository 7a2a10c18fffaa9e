//! A recorded job as one that can be run again.

use std::sync::Arc;

use dynamiccl_spec::{Environment, FaultTolerance, GpuSharing, TopologyClass};
use thiserror::Error;

use super::{Job, Setting, Shown, Source, Traced};
use crate::cluster::{Cluster, ClusterError};
use crate::trace::{Trace, TracedCall, TracedComm};
use crate::workload::{Placement, Planned};

/// Why a trace cannot run.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace does not say where it ran, and nobody else does.
    #[error("the trace names no cluster; give one with --cluster")]
    NoCluster,
    /// The cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] Box<ClusterError>),
    /// A communicator does not fit the cluster.
    #[error(
        "communicator \"{id}\": {nodes} nodes with {ranks_per_node} ranks each do not fit cluster {cluster} \
         ({gpus} GPUs per node); give the cluster on which the trace was recorded"
    )]
    Communicator {
        /// Its name.
        id: String,
        /// Its nodes.
        nodes: u32,
        /// Its ranks in each.
        ranks_per_node: u32,
        /// The cluster.
        cluster: String,
        /// GPUs of one of its nodes.
        gpus: u32,
    },
}

impl Job {
    /// The job of a trace, on the cluster that it names or on this one.
    pub fn replay(trace: &Trace, cluster: Option<&str>) -> Result<Job, ReplayError> {
        let name = cluster.or(trace.header.cluster.as_deref()).ok_or(ReplayError::NoCluster)?;
        let cluster = Arc::new(Cluster::load(name).map_err(Box::new)?);
        let places = trace.header.communicators.iter().map(|comm| place(comm, &cluster));
        let placements = places.collect::<Result<Vec<_>, _>>()?;
        let calls = trace.calls.iter().zip(trace.gaps()).map(|(call, gap)| planned(call, gap)).collect();
        let nodes = placements.iter().map(|place| place.nodes).max().unwrap_or(1);
        Ok(Job {
            nodes: trace.header.nodes.unwrap_or(nodes).max(nodes),
            setting: unsaid(&cluster),
            cluster,
            source: Source::Trace(Arc::new(Traced { placements, calls })),
            shown: Shown::ALL,
            feedback_every: Some(1),
            world: 0,
        })
    }
}

/// A recording says nothing about what was around it, so nothing is told; its machine is the cluster's.
fn unsaid(cluster: &Cluster) -> Setting {
    Setting {
        environment: Environment::Unknown,
        sharing: GpuSharing::Unknown,
        fault_tolerance: FaultTolerance::Unknown,
        class: cluster.inter.as_ref().map_or(TopologyClass::Unknown, |inter| inter.class),
        in_network: None,
        template: None,
        ..Setting::default()
    }
}

/// How a recorded communicator lies on the cluster. Where it takes a part of each node, others like it
/// are taken to use the rest at the same time.
fn place(comm: &TracedComm, cluster: &Cluster) -> Result<Placement, ReplayError> {
    let TracedComm { nodes, ranks_per_node, .. } = *comm;
    if !cluster.hosts(nodes, ranks_per_node) {
        return Err(ReplayError::Communicator {
            id: comm.id.clone(),
            nodes,
            ranks_per_node,
            cluster: cluster.name.clone(),
            gpus: cluster.gpus_per_node,
        });
    }
    let siblings = if nodes > 1 { (cluster.gpus_per_node / ranks_per_node).max(1) } else { 1 };
    Ok(Placement { nodes, ranks_per_node, siblings })
}

/// A recorded call; where no times were recorded, calls follow each other at once.
fn planned(call: &TracedCall, gap: Option<f64>) -> (usize, Planned) {
    let planned = Planned {
        stage: call.stage.unwrap_or(0),
        window: gap.unwrap_or(0.0),
        pipelined: call.pipelined,
        ..Planned::alone(call.collective, call.bytes, call.role)
    };
    (call.comm as usize, planned)
}
