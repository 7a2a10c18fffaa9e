//! The communicators of a job.

use std::sync::Arc;

use dynamiccl_spec::Workload;

use super::line::Line;
use crate::carrier::Making;
use crate::cluster::{Cluster, ClusterError};
use crate::job::{Job, Source};
use crate::known::KnownTimes;
use crate::workload::{Group, Placement};
use crate::world::World;

/// All communicators that one rank of a job calls on.
#[derive(Debug)]
pub(super) struct Lines {
    /// The communicators.
    pub all: Vec<Line>,
    of_group: [Option<u8>; Group::ALL.len()],
    /// Which of them have not been told yet that the job has changed.
    stale: Vec<bool>,
}

/// The communicators of a job; whoever makes schedules for its runtime.
pub(super) fn of_job(
    job: &Job,
    workload: &Workload,
    world: &World,
    making: Option<&Making<'_>>,
) -> Result<Lines, ClusterError> {
    let wired = wired(job);
    let cluster = wired.as_ref().unwrap_or(&job.cluster);
    let mut lines = Lines { all: Vec::new(), of_group: [None; Group::ALL.len()], stale: Vec::new() };
    let recorded: Option<Arc<dyn KnownTimes>> = match &job.source {
        Source::Sweep(swept) => Some(Arc::clone(swept) as _),
        Source::Live(lived) => Some(Arc::clone(lived) as _),
        Source::Training { .. } | Source::Benchmark | Source::Trace(_) => None,
    };
    let mut add = |place, group| -> Result<(), ClusterError> {
        let mut line = Line::new(job, cluster, place, group, workload, world)?;
        line.recorded.clone_from(&recorded);
        // Nobody measured a schedule there.
        if let Some(making) = making.filter(|_| recorded.is_none()) {
            line.carry(making, &job.cluster);
        }
        lines.all.push(line);
        Ok(())
    };
    match &job.source {
        Source::Training { recipe, .. } => {
            let groups = Group::ALL.into_iter().filter(|&group| recipe.layout.size(group) > 1);
            for (next, group) in groups.enumerate() {
                add(recipe.layout.placement(group, job.cluster.gpus_per_node), Some(group))?;
                lines.of_group[group as usize] = Some(next as u8);
            }
        }
        Source::Benchmark => {
            let ranks_per_node = job.cluster.gpus_per_node;
            add(Placement { nodes: job.nodes, ranks_per_node, siblings: 1 }, None)?;
        }
        Source::Trace(traced) => traced.placements.iter().try_for_each(|&place| add(place, None))?,
        Source::Sweep(swept) => add(swept.machine.place, None)?,
        Source::Live(lived) => add(lived.machine.place, None)?,
    }
    lines.stale = vec![false; lines.all.len()];
    Ok(lines)
}

/// The cluster with the job's wiring, where it differs from the file's.
fn wired(job: &Job) -> Option<Cluster> {
    let inter = job.cluster.inter.as_ref()?;
    if inter.class == job.setting.class {
        return None;
    }
    let mut cluster = (*job.cluster).clone();
    cluster.inter.as_mut()?.class = job.setting.class;
    Some(cluster)
}

impl Lines {
    /// The communicator of a group; none where the group is one rank.
    pub fn of(&self, group: Group) -> Option<usize> {
        self.of_group[group as usize].map(usize::from)
    }

    /// Sync mode or tau have changed: every communicator must be told.
    pub fn job_changed(&mut self) {
        self.stale.fill(true);
    }

    /// Whether a communicator must be told anew; it counts as told after that.
    pub fn told_anew(&mut self, line: usize) -> bool {
        std::mem::take(&mut self.stale[line])
    }
}
