//! `decide`: what a policy would choose on one machine over all sizes, why, and NCCL's choice beside it.

mod launch;
mod report;
mod text;

use anyhow::{Result, ensure};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::headroom;
use dynamiccl_env::job::Shown;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::{Bytes, Collective, Knobs, Path, Tuner};
use dynamiccl_synth::library::Library;

use super::machine;
use super::policy_file::{PolicyFile, name_or_shipped};
use crate::args::DecideArgs;
use crate::exit::Ending;
use crate::session::Session;
use launch::Recommendation;
use report::{Answer, Report};

/// Makes the plan and carries it out.
pub fn run(args: &DecideArgs, session: &Session) -> Result<Ending> {
    let mut plan = Plan::new(args)?;
    session.report("decide", &plan.report(args))?;
    Ok(Ending::Done)
}

/// Who is asked about what.
struct Plan {
    tuner: Box<dyn Tuner>,
    cluster: Cluster,
    asking: Asking,
    simulator: Simulator,
    collectives: Vec<Collective>,
    sizes: Vec<u64>,
}

impl Plan {
    fn new(args: &DecideArgs) -> Result<Self> {
        let sizes = match args.bytes.as_slice() {
            [] => headroom::sizes(),
            given => given.iter().map(|&Bytes(bytes)| bytes).collect(),
        };
        ensure!(!sizes.contains(&0), "--bytes 0: there is nothing to send");
        let collectives =
            if args.collective.is_empty() { Collective::TUNED.to_vec() } else { args.collective.clone() };
        let options = CommOptions {
            ranks_per_node: args.ranks_per_node,
            sharp: false,
            version: args.nccl,
            overrides: machine::overrides(&args.env)?,
        };
        let tuner = PolicyFile::open_or_shipped(args.policy.as_deref())?.tuner();
        let cluster = machine::load(&args.machine)?;
        let told = Shown { topology: !args.untold, ..Shown::NOTHING };
        let asking = Asking::new(&cluster, args.nodes, &options, told)?;
        let constants = ConstantsFile::load(&args.constants.constants)?;
        let asking = match args.runtime.runs_schedules() {
            true => asking.with_schedules(&Library::new(), &cluster, &constants),
            false => asking,
        };
        let world = World::nominal(&constants);
        let simulator = Simulator::new(&cluster, args.nodes, &options, &world)?;
        Ok(Plan { tuner, cluster, asking, simulator, collectives, sizes })
    }

    fn report(&mut self, args: &DecideArgs) -> Report {
        let mut answers = Vec::new();
        for at in 0..self.collectives.len() {
            let collective = self.collectives[at];
            answers.extend(self.sizes.clone().into_iter().filter_map(|bytes| self.answer(collective, bytes)));
        }
        let launch = self.launch(&answers);
        let (name, tier) = (self.tuner.name().to_owned(), self.cluster.tier(args.nodes));
        let (cluster, ranks) = (self.cluster.name.clone(), self.asking.communicator().ranks());
        let Cluster { description, .. } = &self.cluster;
        Report {
            policy: name,
            file: name_or_shipped(args.policy.as_deref()),
            cluster,
            description: description.clone(),
            tier,
            nodes: args.nodes,
            ranks,
            nccl_version: args.nccl,
            told: !args.untold,
            constants: args.constants.constants.clone(),
            launch,
            answers,
        }
    }

    /// What to set at launch for these calls.
    fn launch(&self, answers: &[Answer]) -> Recommendation {
        let asked: Vec<_> = answers.iter().map(|answer| answer.knobs.threads).collect();
        Recommendation::new(&asked, answers.len(), |threads| {
            let log_time = |answer: &Answer| {
                let asked = self.asking.call(answer.collective, answer.bytes, 1);
                let realised = self.asking.realise(&asked, &Knobs { threads, ..answer.knobs })?;
                Some(self.simulator.micros(answer.collective, answer.bytes, &realised).ln())
            };
            answers.iter().map(log_time).sum()
        })
    }

    /// What the policy says of a call; nothing where NCCL has no algorithm left for it.
    fn answer(&mut self, collective: Collective, bytes: u64) -> Option<Answer> {
        let asked = self.asking.call(collective, bytes, 1);
        let query = self.asking.query(&asked);
        let micros = |knobs: &Knobs| {
            let realised = self.asking.realise(&asked, knobs)?;
            Some((realised, self.simulator.micros(collective, bytes, &realised)))
        };
        let own = micros(&query.own())?;
        let decision = self.tuner.decide(&query, &mut |knobs| micros(knobs).map(|(_, us)| us));
        let (realised, by_nccl) = micros(&decision.knobs)?;
        let schedule = self.asking.schedule_micros(&asked, &self.simulator);
        let scheduled = schedule.filter(|_| decision.knobs.path == Path::Synthesised);
        let chosen = (realised, scheduled.unwrap_or(by_nccl));
        Some(Answer::new(&asked.call, &decision, own, chosen))
    }
}
