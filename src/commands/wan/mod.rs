//! `wan`: collectives across datacentres, with rings and routes that change; and who decides best when they do.

mod compare;
mod grid;
mod modes;
mod page;
mod plan;

use anyhow::Result;

use crate::args::WanArgs;
use crate::atomic::Apart;
use crate::exit::Ending;
use crate::session::Session;
use plan::Plan;

/// Makes the plan and carries it out.
pub fn run(args: &WanArgs, session: &Session) -> Result<Ending> {
    let plan = Plan::new(args)?;
    Apart::default().reads("--policy", &args.policy).writes("--html", &args.html)?;
    if let Some(policy) = &args.policy {
        compare::run(&plan, policy, session)?;
    } else if args.grid {
        grid::run(&plan, session)?;
    } else {
        modes::run(&plan, session)?;
    }
    Ok(Ending::Done)
}
