//! `bench`: how fast the program itself is.

mod decisions;
mod mix;
mod report;
mod steps;
mod timing;

use anyhow::Result;
use dynamiccl_env::model::ConstantsFile;

use crate::exit::Ending;
use crate::session::Session;
use mix::Mix;
use report::Report;
use timing::Stopwatch;

/// Times every part of a simulated call, the whole of it, steps of the environment, and a policy's decisions.
pub fn run(session: &Session) -> Result<Ending> {
    let constants = ConstantsFile::full();
    let mix = Mix::draw(&constants, session.seed)?;
    let progress = session.progress("bench", Report::TIMINGS);
    let stopwatch = Stopwatch::new(&progress);
    let report = Report::measure(&mix, &constants, session.seed, &stopwatch)?;
    drop(progress);
    session.report("bench", &report)?;
    Ok(Ending::Done)
}
