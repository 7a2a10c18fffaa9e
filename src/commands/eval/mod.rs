//! `eval`: how good tuners are, on the same calls in the same worlds.

mod files;
mod html;
mod report;
mod roster;
mod text;

use std::thread;

use anyhow::{Result, bail, ensure};
use dynamiccl_env::evaluate::{Entrant, Evaluation, Machine, Report};
use dynamiccl_env::headroom::sizes;
use dynamiccl_env::model::ConstantsFile;

use crate::args::EvalArgs;
use crate::exit::Ending;
use crate::session::Session;
use files::Files;
use report::Document;

/// Makes the plan and carries it out.
pub fn run(args: &EvalArgs, session: &Session) -> Result<Ending> {
    let plan = Plan::new(args)?;
    let files = Files::create(args)?;
    let report = plan.judge(session)?;
    files.write(&report, session.seed)?;
    let first = report.tuners.first().and_then(|tuner| tuner.verdict()).map(|figures| figures.speedup);
    session.report("eval", &Document { report })?;
    let failed = args.fail_below.zip(first).is_some_and(|(least, speedup)| speedup < least);
    Ok(if failed { Ending::No } else { Ending::Done })
}

/// What is judged, and where.
struct Plan<'a> {
    args: &'a EvalArgs,
    entrants: Vec<Entrant>,
    machines: Vec<Machine>,
    constants: ConstantsFile,
}

impl<'a> Plan<'a> {
    fn new(args: &'a EvalArgs) -> Result<Self> {
        let entrants = roster::entrants(args)?;
        ensure!(!entrants.is_empty(), "nobody to judge; name tuners with --against, or give a --policy");
        let machines = Machine::list(&args.clusters, &args.nodes, &args.tiers)?;
        let constants = ConstantsFile::load(&args.constants.constants)?;
        if machines.is_empty() {
            bail!(
                "no machine is left: of these clusters none has graphs for --nodes {} at --tiers {}; name others",
                joined(&args.nodes),
                joined(&args.tiers)
            );
        }
        Ok(Plan { args, entrants, machines, constants })
    }

    fn judge(&self, session: &Session) -> Result<Report> {
        let evaluation = Evaluation {
            seed: session.seed,
            seeds: self.args.seeds,
            worlds: self.args.worlds,
            threads: thread::available_parallelism().map_or(1, |cores| cores.get()),
            constants: &self.constants,
        };
        let progress = session.progress("eval", evaluation.steps(&self.machines));
        let step = || progress.advance(1).map_err(anyhow::Error::from);
        evaluation.cells(&self.machines, &sizes(), &self.entrants, step)
    }
}

fn joined(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
