//! `rails`: what changing circuits costs a job, and what the network behind it costs.

mod html;
mod report;
mod study;
mod tables;

use anyhow::Result;

use crate::args::RailsArgs;
use crate::atomic::{Apart, OutFile};
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
        Apart::default().reads("--policy", [&args.policy]).writes("--html", &args.html)?;
        let file = args.html.as_deref().map(OutFile::create).transpose()?;
        let report = plan.run(session)?;
        // What was worked out is told even where the page cannot be written.
        let told = session.report("rails", &report);
        if let Some(file) = file {
            file.finish(html::page(&report, session.seed).as_bytes())?;
        }
        told?;
    }
    Ok(Ending::Done)
}
