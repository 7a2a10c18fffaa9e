//! `eval`: how good tuners are, on the same calls in the same worlds.

mod files;
mod html;
mod proof;
mod report;
mod roster;
mod same_call;
mod text;
mod workload;

use std::sync::Arc;

use anyhow::{Context, Error, Result, ensure};
use dynamiccl_env::evaluate::tiers::SameCalls;
use dynamiccl_env::evaluate::{Entrant, Evaluation, Kind, Player, Report};
use dynamiccl_env::headroom::sizes;
use dynamiccl_env::job::Shown;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::schedules::Schedules;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_synth::library::Library;

use crate::args::{EvalArgs, Proof};
use crate::exit::Ending;
use crate::session::{Session, cores};
use files::Files;
pub use report::Document;
use report::Verdict;
use workload::Workload;

/// Makes the plan and carries it out.
pub fn run(args: &EvalArgs, session: &Session) -> Result<Ending> {
    if args.proof == Some(Proof::Tiers) {
        return proof::run(args, session);
    }
    let plan = Plan::new(args)?;
    plan.workload.warnings().iter().for_each(|warning| session.output.note(format_args!("{warning}")));
    let files = Files::create(args)?;
    let report = plan.judge(session, session.seed)?;
    ensure!(
        report.tuners.first().is_some_and(|tuner| tuner.verdict().is_some()),
        "no call was judged: a job's first 50 calls are not; give longer jobs or other --tiers"
    );
    let verdict = args.fail_below.and_then(|least| Verdict::new(&report, least));
    let failed = verdict.as_ref().is_some_and(|verdict| !verdict.passed);
    let document = plan.document(report, verdict);
    // What was worked out is told even where a file cannot be written.
    let told = session.report("eval", &document);
    files.write(&document.report, session.seed).and(told)?;
    Ok(if failed { Ending::No } else { Ending::Done })
}

/// The document of `eval` with these words and this seed; other commands end in it.
pub fn judge(args: &EvalArgs, seed: u64, session: &Session) -> Result<Document> {
    let plan = Plan::new(args)?;
    Ok(plan.document(plan.judge(session, seed)?, None))
}

/// Whether these words can be carried out, as far as that is known before.
pub fn check(args: &EvalArgs) -> Result<()> {
    Plan::new(args).map(drop)
}

/// Who is judged, and on what.
struct Plan<'a> {
    args: &'a EvalArgs,
    entrants: Vec<Entrant>,
    /// The hash of the policy that comes first.
    policy: Option<u64>,
    workload: Workload,
    constants: Arc<ConstantsFile>,
    /// Made where they are asked for, if ever.
    schedules: Arc<Library>,
}

impl<'a> Plan<'a> {
    fn new(args: &'a EvalArgs) -> Result<Self> {
        let (entrants, policy) = (roster::entrants(args)?, roster::first_hash(args)?);
        ensure!(!entrants.is_empty(), "nobody to judge; name tuners with --against, or give a --policy");
        ensure!(
            args.fail_below.is_none() || entrants[0].kind != Kind::Nccl,
            "--fail-below: the first tuner is nccl, whose speed-up is 1 whatever happens; name the one to judge \
             first, or give a --policy"
        );
        let workload = Workload::new(args)?;
        let needs_cells = entrants.iter().any(|entrant| matches!(entrant.player, Player::Bayes));
        ensure!(
            !needs_cells || matches!(workload, Workload::Cells(_)),
            "--against bayes: it is the best of fixed knobs in each cell, and --workload {} has none; leave it out",
            args.workload
        );
        ensure!(
            args.hide.is_empty() || matches!(workload, Workload::Cells(_)),
            "--hide goes with --workload cells: jobs say themselves what is told of them"
        );
        ensure!(
            args.nccl.is_none() || matches!(workload, Workload::Cells(_)),
            "--nccl goes with --workload cells: jobs and recordings say themselves which release they ran with"
        );
        ensure!(
            !args.told || matches!(workload, Workload::Swept(..)),
            "--told goes with a recorded sweep; cells are told (--hide takes away), and jobs say themselves what is told"
        );
        let constants = Arc::new(ConstantsFile::load(&args.constants.constants)?);
        ensure!(
            args.runtime.runtime.is_none() || !matches!(workload, Workload::Swept(..)),
            "--runtime goes with simulated times: nobody measured a schedule in --workload {}; leave it out",
            args.workload
        );
        Ok(Plan { args, entrants, policy, workload, constants, schedules: Arc::new(Library::new()) })
    }

    fn judge(&self, session: &Session, seed: u64) -> Result<Report> {
        let made: &dyn Schedules = &*self.schedules;
        let schedules = self.args.runtime.runs_schedules().then_some(made);
        let evaluation = Evaluation { schedules, ..evaluation(self.args, seed, &self.constants) };
        let grounds = match &self.workload {
            Workload::Cells(machines) => machines.len(),
            Workload::Swept(sweeps, _) => sweeps.len(),
            Workload::Drawn(_) | Workload::Recorded(..) => 1,
        };
        let progress = session.progress("eval", evaluation.steps(grounds));
        let step = || progress.advance(1).map_err(Error::from);
        if let Workload::Cells(machines) = &self.workload {
            return evaluation.cells(machines, &sizes(), &self.entrants, step);
        }
        let (name, tiers) = (&self.args.workload, workload::tiers(self.args));
        if let Workload::Swept(sweeps, _) = &self.workload {
            let shown = Shown { topology: self.args.told, ..Shown::NOTHING };
            let judged = evaluation.sweeps(name, sweeps, shown, &self.entrants, step);
            return judged.with_context(|| format!("--workload {name}"));
        }
        let make = || self.env().expect("every other workload has jobs");
        let judged = evaluation.jobs(name, make, tiers, &self.entrants, step);
        judged.with_context(|| format!("--workload {name}"))
    }

    fn document(&self, report: Report, verdict: Option<Verdict>) -> Document {
        let judged = report.tuners.first().filter(|first| first.kind == Kind::Tuner);
        let same_call = judged.and_then(|_| SameCalls::new(&report, 0));
        let policy = self.policy.map(|hash| format!("{hash:016x}"));
        let (constants, hidden) = (self.args.constants.constants.clone(), self.args.hide.clone());
        let (told, notes) = (self.args.told, !self.args.without_notes);
        let nccl_version =
            matches!(self.workload, Workload::Cells(_)).then(|| self.args.nccl.unwrap_or_default());
        Document { report, policy, constants, hidden, nccl_version, told, notes, same_call, verdict }
    }

    /// An environment with the jobs of the workload; none for cells and sweeps.
    fn env(&self) -> Option<SimEnv> {
        let env = self.workload.env(&self.constants)?.with_schedules(Arc::clone(&self.schedules) as _);
        Some(match self.args.runtime.runtime {
            Some(runtime) => env.with_runtime(runtime),
            None => env,
        })
    }
}

/// The worlds and threads that the words ask for.
fn evaluation<'a>(args: &EvalArgs, seed: u64, constants: &'a ConstantsFile) -> Evaluation<'a> {
    let threads = cores();
    Evaluation { seed, seeds: args.seeds, worlds: args.worlds, threads, constants, schedules: None }
}

fn joined(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
