//! `eval --proof tiers`: whether a policy knows what a tier is, and not only what NCCL tells it.

mod report;
mod text;

use anyhow::{Context, Error, Result};
use dynamiccl_env::evaluate::tiers::{EqualTables, SameCalls};
use dynamiccl_env::evaluate::{Entrant, Machine};
use dynamiccl_env::headroom::sizes;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::roster::by_name;
use dynamiccl_spec::features::Hidden;

use super::{evaluation, roster};
use crate::args::EvalArgs;
use crate::commands::policy_file::PolicyFile;
use crate::exit::Ending;
use crate::session::Session;
use report::{Equal, Report};

/// What is hidden, and what it is called: the tier itself, and all that a deployment says of a topology.
const HIDDEN: [(&str, &[&str]); 2] = [
    ("tier hidden", &["communicator_tier_max", "communicator_tier_mix"]),
    ("topology hidden", &["topology"]),
];

/// Makes the plan and carries it out.
pub fn run(args: &EvalArgs, session: &Session) -> Result<Ending> {
    let ((name, policy), notes) = (roster::policy_alone(args)?, !args.without_notes);
    let constants = ConstantsFile::load(&args.constants.constants)?;
    let evaluation = evaluation(args, session.seed, &constants);
    let near_and_far = near_and_far()?;
    let machines = near_and_far.len() + EqualTables::machines()?.len();
    let progress = session.progress("proof", evaluation.steps(machines));
    let step = || progress.advance(1).map_err(Error::from);
    let with_bayes = [roster::decided_by(policy.clone(), &name, notes), Entrant::bayes()];
    let judged = evaluation.cells(&near_and_far, &sizes(), &with_bayes, step)?;
    let same_call = SameCalls::new(&judged, 0).context("the clusters of the proof are not all there")?;
    let (judged, compared) = evaluation.equal_tables(&sizes(), &entrants(&name, &policy, notes)?, step)?;
    drop(progress);
    let equal_tables = Equal::new(compared, &judged, HIDDEN);
    let report = Report::new(args, name, same_call, equal_tables);
    session.report("eval", &report)?;
    Ok(if report.passed { Ending::Done } else { Ending::No })
}

/// The machines on which the same call is made.
fn near_and_far() -> Result<Vec<Machine>> {
    let mut machines = Vec::new();
    for (cluster, nodes) in SameCalls::machines() {
        machines.extend(Machine::list(&[cluster.to_owned()], &[nodes], &[1, 2, 3, 4])?);
    }
    Ok(machines)
}

/// The policy that is told everything, those that are not, and who shows what that is worth.
fn entrants(name: &str, policy: &PolicyFile, notes: bool) -> Result<Vec<Entrant>> {
    let mut entrants = vec![roster::decided_by(policy.clone(), name, notes)];
    for (title, features) in HIDDEN {
        let hidden = Hidden::of(features.iter().copied())?;
        entrants.push(roster::decided_by(policy.clone(), title, notes).hiding(hidden));
    }
    entrants.push(Entrant::tuner("nccl", |seed| by_name("nccl", seed).expect("a tuner of the roster")));
    entrants.push(Entrant::bayes());
    Ok(entrants)
}
