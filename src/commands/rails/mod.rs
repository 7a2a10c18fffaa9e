//! `rails`: what changing circuits costs a job, and what the network behind it costs.

mod html;
mod report;
mod study;
mod tables;

use anyhow::Result;

use crate::args::RailsArgs;
use crate::atomic::OutFile;
use crate::exit::Ending;
use crate::session::Session;

/// Does what the words ask for.
pub fn run(args: &RailsArgs, session: &Session) -> Result<Ending> {
    if args.table3 {
        session.report("rails", &tables::Scales::new())?;
    } else if args.bom {
        session.report("rails", &tables::Bills::new(args.servers))?;
    } else {
        let plan = study::Plan::new(args, session.seed)?;
        let file = args.html.as_deref().map(OutFile::create).transpose()?;
        let report = plan.run(session)?;
        if let Some(file) = file {
            file.finish(html::page(&report, session.seed).as_bytes())?;
        }
        session.report("rails", &report)?;
    }
    Ok(Ending::Done)
}
