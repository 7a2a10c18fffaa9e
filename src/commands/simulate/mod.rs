//! `simulate`: the true and the NCCL-predicted time of every knob setting of one call, or what there is
//! to win on the machines of a curriculum.

mod report;
mod survey;
mod text;

use std::env;

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::job::Shown;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::{Algorithm, Bytes, Collective, Overrides};
use dynamiccl_synth::library::Library;

use super::machine;
use crate::args::SimulateArgs;
use crate::exit::Ending;
use crate::session::Session;
use report::Report;

/// Makes the plan and carries it out.
pub fn run(args: &SimulateArgs, session: &Session) -> Result<Ending> {
    if let Some(curriculum) = &args.curriculum {
        return survey::run(curriculum, args, session);
    }
    let plan = Plan::new(args)?;
    for variable in unused_variables(args) {
        session.output.note(format_args!(
            "{variable} is set in this shell and not looked at; --env {variable}=… would simulate it"
        ));
    }
    session.report("simulate", &plan.report(args)?)?;
    Ok(Ending::Done)
}

/// What is simulated.
struct Plan {
    cluster: Cluster,
    simulator: Simulator,
    /// Its synthesised schedule, where a runtime can run one.
    schedule: Option<report::Schedule>,
    collective: Collective,
    bytes: u64,
    nodes: u32,
}

impl Plan {
    fn new(args: &SimulateArgs) -> Result<Self> {
        let call = args.nodes.zip(args.collective).zip(args.bytes);
        let ((nodes, collective), Bytes(bytes)) = call.context("give --nodes, --collective and --bytes")?;
        ensure!(bytes > 0, "--bytes 0: there is nothing to send");
        let options = CommOptions {
            ranks_per_node: args.ranks_per_node,
            sharp: args.sharp,
            version: args.nccl,
            overrides: machine::overrides(&args.env)?,
        };
        let mut cluster = machine::load(&args.machine)?;
        machine::replace_graphs(&mut cluster, nodes, args.graphs.graph.as_deref())?;
        let constants = ConstantsFile::load(&args.constants.constants)?;
        let world = match args.world {
            Some(seed) => World::draw(&constants, seed),
            None => World::nominal(&constants),
        };
        let simulator = Simulator::new(&cluster, nodes, &options, &world)?;
        let mut schedule = None;
        if args.runtime.runs_schedules() {
            let asking = Asking::new(&cluster, nodes, &options, Shown::NOTHING)?;
            let asking = asking.with_schedules(&Library::new(), &cluster, &constants);
            let asked = asking.call(collective, bytes, 1);
            let times = asked.call.synthesised.zip(asking.schedule_micros(&asked, &simulator));
            schedule = times.map(|(predicted_us, time_us)| report::Schedule { predicted_us, time_us });
        }
        Ok(Plan { cluster, simulator, schedule, collective, bytes, nodes })
    }

    fn report(&self, args: &SimulateArgs) -> Result<Report> {
        let Plan { collective, bytes, nodes, .. } = *self;
        let communicator = self.simulator.communicator();
        let table = communicator.cost_table(collective, bytes, 1);
        let decision = communicator.decide_from(&table, bytes);
        let timed = self.simulator.own(collective, bytes).zip(self.simulator.best(collective, bytes));
        let Some((decision, (own, best))) = decision.zip(timed) else {
            bail!(
                "cluster {}: NCCL has no algorithm left for {collective}; take back some of --env",
                self.cluster.name
            );
        };
        let settings = self.simulator.settings(collective, bytes);
        Ok(Report {
            simulated: true,
            cluster: self.cluster.name.clone(),
            description: self.cluster.description.clone(),
            tier: self.cluster.tier(nodes),
            nodes,
            ranks: communicator.ranks(),
            collective,
            bytes,
            nccl_version: args.nccl,
            env: args.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            world: args.world,
            constants: args.constants.constants.clone(),
            topo: args.machine.topo.as_deref().map(machine::name),
            graph: args.graphs.graph.as_deref().map(machine::name),
            notes: self.notes(args),
            nccl: report::Own::new(&decision, &own, &table),
            best: report::Timed::new(&best),
            headroom: own.micros / best.micros,
            schedule: self.schedule,
            knobs: report::fastest_first(&settings),
            top: args.top,
        })
    }

    /// What a reader must know to take the numbers for what they are.
    fn notes(&self, args: &SimulateArgs) -> Vec<String> {
        let communicator = self.simulator.communicator();
        let (ranks, local) = (communicator.ranks(), communicator.ranks_per_node());
        let mut notes = Vec::new();
        if args.machine.topo.is_some() {
            let note = "made from a topology dump, with links as fast as usual for such machines; calibrate fits them";
            notes.push(note.to_owned());
        }
        let bytes = self.bytes;
        if self.collective.is_sharded() && !bytes.is_multiple_of(u64::from(ranks)) {
            let whole = bytes / u64::from(ranks) * u64::from(ranks);
            notes.push(format!(
                "{bytes} B do not divide by {ranks} ranks: NCCL would send {whole} B, times are for the size as given"
            ));
        }
        let all = self.cluster.gpus_per_node;
        if local < all && self.cluster.graphs.part.iter().all(|part| part.ranks_per_node < local) {
            notes.push(format!("{local} of {all} GPUs per node: NCCL's graphs are those of whole nodes"));
        }
        if args.runtime.runs_schedules() && self.schedule.is_none() {
            notes.push("--runtime msccl changes nothing: there is no schedule for this call here".to_owned());
        }
        let no_collnet = communicator.graph(Algorithm::CollnetChain).channels == 0;
        if args.sharp && (self.nodes == 1 || no_collnet) {
            notes.push("--sharp changes nothing: there is no CollNet graph on these nodes".to_owned());
        }
        notes
    }
}

/// Variables of the shell that would change NCCL's decision in a job started from it.
fn unused_variables(args: &SimulateArgs) -> impl Iterator<Item = &'static str> {
    let given = |variable: &str| args.env.iter().any(|(name, _)| name == variable);
    Overrides::VARIABLES.into_iter().filter(move |name| env::var_os(name).is_some() && !given(name))
}
