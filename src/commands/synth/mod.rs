//! `synth`: sketch → schedule → MSCCL file and picture; or the proof of a file.

mod prove;
mod report;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Error, Result, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_env::text;
use dynamiccl_spec::{Bytes, Collective};
use dynamiccl_synth::bound::lower_bound;
use dynamiccl_synth::discover::sysfs;
use dynamiccl_synth::msccl::export::export;
use dynamiccl_synth::picture::draw;
use dynamiccl_synth::plan::{self, Choice};
use dynamiccl_synth::{Assume, Backend, Executor, Machine, Recipe, Sketch, Synthesizer};

use super::machine;
use crate::args::{MachineArgs, SynthArgs};
use crate::atomic::{Apart, OutFile};
use crate::exit::Ending;
use crate::session::Session;
use report::Report;

/// Makes the plan and carries it out.
pub fn run(args: &SynthArgs, session: &Session) -> Result<Ending> {
    if let Some(file) = &args.verify {
        return prove::run(file, session);
    }
    let plan = Plan::new(args)?;
    let report = plan.synthesise(session)?;
    let verdict = if report.verified { Ending::Done } else { Ending::No };
    session.report("synth", &report)?;
    Ok(verdict)
}

/// What is synthesised, and where it goes.
struct Plan {
    machine: Machine,
    collective: Collective,
    bytes: u64,
    choice: Choice,
    out: Option<OutFile>,
    picture: Option<OutFile>,
    sketch_out: Option<OutFile>,
}

impl Plan {
    fn new(args: &SynthArgs) -> Result<Self> {
        let call = args.nodes.zip(args.collective).zip(args.bytes);
        let ((nodes, collective), Bytes(bytes)) = call.context("give --nodes, --collective and --bytes")?;
        ensure!(bytes > 0, "--bytes 0: there is nothing to send");
        let mut machine = synth_machine(&args.machine, args.sysfs.as_deref(), nodes, args.ranks_per_node)?;
        if let Some(rate) = args.network_channel {
            machine.rates.network_channel = rate;
        }
        let choice = choice(args, &machine)?;
        apart(args)?;
        let create = |path: &Option<_>| path.as_deref().map(OutFile::create).transpose();
        Ok(Plan {
            out: create(&args.out)?,
            picture: create(&args.picture)?,
            sketch_out: create(&args.sketch_out)?,
            machine,
            collective,
            bytes,
            choice,
        })
    }

    fn synthesise(self, session: &Session) -> Result<Report> {
        let Plan { machine, collective, bytes, choice, out, picture, sketch_out } = self;
        let clock = Instant::now();
        let progress = session.progress("synth", choice.steps());
        let step = |runs| progress.advance(runs).map_err(Error::from);
        let best = plan::best_while(&machine, collective, bytes, &choice, step)?;
        drop(progress);
        let search_ms = clock.elapsed().as_secs_f64() * 1e3;
        let used = best.utilisation(&machine, bytes);
        // Of many ranks what is said of a schedule takes long, too.
        session.interrupt().check()?;
        let report = Report {
            simulated: true,
            machine: machine.name.clone(),
            ranks: machine.ranks(),
            collective,
            bytes,
            sketch: best.sketch.name.clone(),
            connections: best.sketch.links.len(),
            synthesizer: best.recipe.synthesizer,
            assume: best.recipe.assume,
            chunks: best.recipe.chunks,
            backend: best.backend,
            sends: best.schedule.sends.len(),
            steps: best.schedule.steps(),
            time_us: best.micros,
            lower_bound_us: lower_bound(&machine, collective, bytes),
            nic_utilisation: used.nic,
            link_utilisation: used.link,
            port_utilisation: used.port,
            verified: best.verified(),
            synthesis_ms: best.made_in.as_secs_f64() * 1e3,
            search_ms,
        };
        let title = format!("{} on {}, {}", collective, machine.name, Bytes(bytes));
        if let Some(file) = out {
            let name = format!("{collective}_{}", best.sketch.mode);
            file.finish(export(&best.schedule, &best.backend, &name)?.to_xml().as_bytes())?;
        }
        if let Some(file) = sketch_out {
            file.finish(best.sketch.to_toml(&machine).as_bytes())?;
        }
        if let Some(file) = picture {
            let run =
                Executor::new(&machine, &best.sketch, &best.schedule).run(bytes, &best.backend, 1, true);
            file.finish(draw(&machine, &run.flows, &title).as_bytes())?;
        }
        Ok(report)
    }
}

/// Makes sure that no file would be written over another, or over what it is made from.
fn apart(args: &SynthArgs) -> Result<()> {
    Apart::default()
        .reads("--cluster", &args.machine.cluster)
        .reads("--topo", &args.machine.topo)
        .reads("--sysfs", &args.sysfs)
        .reads("--sketch-file", &args.sketch_file)
        .writes("--out", &args.out)?
        .writes("--picture", &args.picture)?
        .writes("--sketch-out", &args.sketch_out)?;
    Ok(())
}

/// The machine of a synthesizer: a cluster, a dump, or a cluster with the PCIe tree of a node.
pub fn synth_machine(
    args: &MachineArgs,
    tree: Option<&Path>,
    nodes: u32,
    ranks_per_node: Option<u32>,
) -> Result<Machine> {
    let cluster: Cluster = machine::load(args)?;
    let ranks = |gpus: u32| ranks_per_node.unwrap_or(gpus);
    if let Some(file) = &args.topo {
        let topology = Topology::read(file)?;
        return Ok(Machine::from_topology(&cluster, &topology, nodes, ranks(cluster.gpus_per_node))?);
    }
    let Some(tree) = tree else {
        return Ok(Machine::from_cluster(&cluster, nodes, ranks(cluster.gpus_per_node))?);
    };
    let topology = sysfs::topology(&sysfs::read(tree)?, &cluster, &machine::name(tree))?;
    let gpus = topology.gpus().len() as u32;
    Ok(Machine::from_topology(&cluster, &topology, nodes, ranks(gpus))?)
}

/// What is tried: all that is usual, but for what is given.
fn choice(args: &SynthArgs, machine: &Machine) -> Result<Choice> {
    let mut choice = Choice { exportable: args.out.is_some(), ..Choice::usual(machine) };
    if let Some(mode) = args.sketch.mode() {
        choice.sketches = vec![Sketch::new(machine, mode)];
    }
    if let Some(file) = &args.sketch_file {
        let sketch = text::read(file).with_context(|| machine::name(file))?;
        choice.sketches = vec![Sketch::from_toml(&machine::name(file), &sketch, machine)?];
    }
    if args.synthesizer.is_some() || args.assume.is_some() || args.chunks.is_some() {
        choice.recipes = recipes(args, machine.nodes());
    }
    if args.protocol.is_some() || args.channels.is_some() || args.threads.is_some() || args.buffer.is_some() {
        let own = Backend::default();
        choice.backends = vec![Backend {
            protocol: args.protocol.unwrap_or(own.protocol),
            channels: args.channels.unwrap_or(own.channels),
            threads: args.threads.unwrap_or(own.threads),
            buffer: args.buffer.map_or(own.buffer, |Bytes(bytes)| bytes),
        }];
        ensure!(choice.backends[0].buffer >= 1024, "--buffer: give at least 1K");
    }
    Ok(choice)
}

/// The recipes that the words leave open.
fn recipes(args: &SynthArgs, nodes: usize) -> Vec<Recipe> {
    let one = |given: Option<Synthesizer>| given.map_or(Synthesizer::ALL.to_vec(), |one| vec![one]);
    let assumed = args.assume.map_or(vec![Assume::Nic, Recipe::unaware(nodes).assume], |one| vec![one]);
    let chunks = args.chunks.map_or(vec![1, 4], |one| vec![one]);
    let mut recipes = Vec::new();
    for synthesizer in one(args.synthesizer) {
        for &assume in &assumed {
            let of = |&chunks| Recipe { synthesizer, assume, local: assume == Assume::Nic, chunks, seed: 0 };
            recipes.extend(chunks.iter().map(of));
        }
    }
    recipes
}
