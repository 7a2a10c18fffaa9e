//! Ranks as an environment, for whoever learns or checks there.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::lived::{Limits, Lived};
use dynamiccl_env::measure::Clock;
use dynamiccl_env::measure::sweep::Link;
use dynamiccl_env::swept;
use dynamiccl_live::cell::grid;

use super::job::{Job, Wish};
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
    let wish = Wish::of(Clock::Slowest, calls);
    if let Some(ending) = Job::attend(job, std::slice::from_ref(&wish), session)? {
        return Ok(Err(ending));
    }
    let link = job.link.as_deref().map_or(Ok(Link::Loopback), |word| word.parse().context("--link"))?;
    let machine = swept::machine(ranks, link, named.as_ref(), Path::new("--cluster"))?;
    let cells = grid(&calls.collectives, &calls.sizes.0);
    let cells: Vec<_> = cells.into_iter().map(|cell| (cell.collective, cell.bytes)).collect();
    let caller = Job::start(job, &wish, session)?.into_caller();
    let lived = Lived::open(machine, &cells, Box::new(caller), limits)?;
    Ok(Ok(Arc::new(lived)))
}
