//! `check-env`: does an environment keep the contract?

mod backend;
mod report;

use anyhow::{Context, Result};
use dynamiccl_env::gym::Env;
use dynamiccl_env::gym::check::{CheckOptions, Report, check};

use crate::args::CheckEnvArgs;
use crate::exit::Ending;
use crate::session::Session;

/// Seeds that are tried, counted from the session's.
const SEEDS: u64 = 3;

/// Checks the environment; the answer is no where a rule is broken.
pub fn run(args: &CheckEnvArgs, session: &Session) -> Result<Ending> {
    let plan = Plan { steps: args.steps, session };
    let report = match backend::check(args, &plan)? {
        Ok(report) => report,
        Err(ending) => return Ok(ending),
    };
    let document = report::Document::new(args, &report);
    session.report("check-env", &document)?;
    Ok(if report.ok() { Ending::Done } else { Ending::No })
}

/// How an environment is checked, whichever it is.
struct Plan<'a> {
    steps: u64,
    session: &'a Session,
}

impl Plan<'_> {
    /// Holds what `make` makes to every rule.
    fn check<E: Env>(&self, make: impl Fn() -> Result<E>) -> Result<Report> {
        let seeds = (0..SEEDS).map(|i| self.session.seed.wrapping_add(i)).collect();
        let options = CheckOptions { steps: self.steps, seeds, ..CheckOptions::default() };
        let progress = self.session.progress("check-env", self.steps);
        let report = check(make, &options, |steps| progress.advance(steps).map_err(Into::into));
        report.context("cannot check the environment")
    }
}
