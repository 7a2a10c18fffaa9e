//! Ranks as an environment, for whoever learns or checks there.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::lived::{Limits, Lived};
use dynamiccl_env::measure::Clock;
use dynamiccl_env::measure::sweep::About;
use dynamiccl_env::swept;
use dynamiccl_live::sheet::Conditions;

use super::job::{Job, Wish};
use super::known::link;
use crate::args::{CallsArgs, JobArgs};
use crate::exit::Ending;
use crate::session::Session;

/// Starts ranks and asks NCCL about every call; none where this is another rank than the first under a launcher, whose work
/// is done then. Times are until all ranks are done, for that is what a job waits for.
pub fn start(
    job: &JobArgs,
    calls: &CallsArgs,
    cluster: Option<&str>,
    limits: Limits,
    session: &Session,
) -> Result<Result<Arc<Lived>, Ending>> {
    let named = cluster.map(Cluster::load).transpose()?;
    let ranks = Job::ranks(job)?;
    ensure!(
        job.share_gpu || named.is_some(),
        "--cluster: name the machine that the ranks run on, for instance dgx_h100; only ranks that share a GPU need none"
    );
    if let Some(several) = named.as_ref().filter(|cluster| job.share_gpu && cluster.gpus_per_node > 1) {
        bail!(
            "--cluster {}: ranks that share a GPU are hosts of one GPU each, and its nodes have {}; leave --cluster out, or \
             name a cluster with one GPU a node",
            several.name,
            several.gpus_per_node
        );
    }
    let wish = Wish::of(Clock::Slowest, calls);
    if let Some(ending) = Job::attend(job, std::slice::from_ref(&wish), session)? {
        return Ok(Err(ending));
    }
    let link = link(job)?;
    let machine = |about| swept::machine(ranks, link, &about, named.as_ref(), Path::new("--cluster"));
    let shared = About { shared: Some(job.share_gpu), ..About::default() };
    // What can be refused without ranks is.
    machine(shared.clone())?;
    let cells: Vec<_> = wish.cells.iter().map(|cell| (cell.collective, cell.bytes)).collect();
    let job = Job::start(job, &wish, session)?;
    let Conditions { nccl, nodes, ranks_per_node, .. } = job.conditions().clone();
    let machine = machine(About { nccl: Some(nccl), nodes, ranks_per_node, ..shared })?;
    let opened = Lived::open(machine, &cells, Box::new(job.into_caller()), limits);
    // Whatever else a call says that was stopped, it was stopped.
    session.interrupt().check()?;
    Ok(Ok(Arc::new(opened?)))
}
