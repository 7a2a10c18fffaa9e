//! `export`: a policy as a file to deploy, or its decisions on one machine as a table for NVIDIA's tuner.

mod csv;
mod guard;
mod history;
mod ranges;
mod report;
mod results;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dynamiccl_agent::run;
use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::job::Shown;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::policy::PolicyTuner;

use super::machine;
use super::policy_file::{is_shipped, shipped};
use crate::args::{ExportArgs, ExportFormat, MachineArgs};
use crate::atomic::{Apart, OutFile, ends_in};
use crate::exit::Ending;
use crate::session::Session;
use report::{Made, Report, Rules};

/// Makes the plan and carries it out.
pub fn run(args: &ExportArgs, session: &Session) -> Result<Ending> {
    check(args)?;
    // What decides something else than NCCL's knobs can be copied, and nothing else.
    let decides = args.format == ExportFormat::NcclCsv || args.history.is_some() || args.calibrate_guard;
    let open = if decides { Frozen::open_tuner } else { Frozen::open };
    let file = policy(args)?;
    apart(args, file.as_deref())?;
    match args.format {
        // NVIDIA's example tuner looks for nccl_tuner.conf where nobody names another.
        ExportFormat::NcclCsv => ends_in("--out", &args.out, &["csv", "conf"], "NVIDIA's table")?,
        ExportFormat::Policy => ends_in("--out", &args.out, &["safetensors"], "a policy")?,
    }
    let source = file.map_or_else(shipped, |file| Ok(open(&file)?))?;
    let out = OutFile::create(&args.out)?;
    let (frozen, recalled) = match &args.history {
        Some(file) => {
            let cluster = args.machine.cluster.as_deref();
            let (frozen, recalled) = history::remember(&source, file, cluster, session)?;
            (frozen, Some(recalled))
        }
        None => (source.clone(), None),
    };
    let (frozen, guard) = match (args.margin, args.calibrate_guard) {
        (Some(margin), _) => (guard::with_margin(&frozen, margin), None),
        (None, true) => {
            let (frozen, guard) = guard::calibrate(&frozen, args, session)?;
            (frozen, Some(guard))
        }
        (None, false) => (frozen, None),
    };
    let frozen = descended(frozen, &source);
    let frozen = match &args.results {
        Some(file) => results::stamp(&frozen, file)?,
        None => frozen,
    };
    let frozen = chosen(frozen, &args.among);
    let (bytes, table) = match args.format {
        ExportFormat::Policy => (readable(&frozen)?, None),
        ExportFormat::NcclCsv => {
            let (bytes, table) = table(args, &frozen)?;
            (bytes, Some(table))
        }
    };
    out.finish(&bytes)?;
    session.report("export", &Report::new(args, &source, &frozen, Made { recalled, guard, table }))?;
    Ok(Ending::Done)
}

/// Makes sure that nothing is written over what is read. The file of --policy may be: that is how a policy is
/// brought up to date. A run keeps its own.
fn apart(args: &ExportArgs, policy: Option<&Path>) -> Result<()> {
    Apart::default()
        .reads("--run", policy.filter(|_| args.run.is_some()))
        .reads("--history", &args.history)
        .reads("--results", &args.results)
        .reads("--cluster", &args.machine.cluster)
        .reads("--topo", &args.machine.topo)
        .reads("--graph", &args.graphs.graph)
        .writes("--out", [&args.out])?;
    Ok(())
}

/// The policy with its parent, where it decides otherwise than that.
fn descended(mut policy: Frozen, source: &Frozen) -> Frozen {
    if policy.weights != source.weights || policy.about.margin != source.about.margin {
        policy.about.training.parent = Some(source.hash());
    }
    policy
}

/// The policy with the seeds of the runs among which it was chosen, where they are told.
fn chosen(mut policy: Frozen, among: &[u64]) -> Frozen {
    if !among.is_empty() {
        policy.about.training.seeds = among.to_vec();
    }
    policy
}

/// The file of the policy.
fn policy(args: &ExportArgs) -> Result<Option<PathBuf>> {
    match (&args.policy, &args.run) {
        (None, Some(run)) => Ok(Some(run::policy_of(run)?)),
        (file, _) => Ok(file.clone().filter(|file| !is_shipped(file))),
    }
}

/// What can be said about the words before any file is opened.
fn check(args: &ExportArgs) -> Result<()> {
    if args.format == ExportFormat::NcclCsv {
        ensure!(
            args.nodes.is_some(),
            "--format nccl-csv: give --cluster and --nodes, a table is for one machine"
        );
        return Ok(());
    }
    let MachineArgs { cluster, topo } = &args.machine;
    let for_table = topo.is_some() || args.ranks_per_node.is_some();
    let for_one = args.nodes.is_none() && (cluster.is_none() || args.history.is_some());
    ensure!(
        !for_table && (for_one || args.calibrate_guard),
        "a policy is for every machine; --cluster and --nodes go with --format nccl-csv or --calibrate-guard"
    );
    ensure!(
        args.nccl.is_none() && args.graphs.graph.is_none(),
        "a policy is for every machine and release; --graph and --nccl go with --format nccl-csv"
    );
    Ok(())
}

/// The bytes of a policy that can be read again: nothing else may get the file's name.
fn readable(frozen: &Frozen) -> Result<Vec<u8>> {
    let bytes = frozen.to_bytes();
    Frozen::read(&bytes).context("what would be written cannot be read")?;
    Ok(bytes)
}

fn table(args: &ExportArgs, frozen: &Frozen) -> Result<(Vec<u8>, Rules)> {
    let nodes = args.nodes.context("give --nodes")?;
    let mut cluster = machine::load(&args.machine)?;
    machine::replace_graphs(&mut cluster, nodes, args.graphs.graph.as_deref())?;
    let options = CommOptions {
        ranks_per_node: args.ranks_per_node,
        version: args.nccl.unwrap_or_default(),
        ..CommOptions::default()
    };
    // Who asks for the table of a machine knows the machine.
    let asking = Asking::new(&cluster, nodes, &options, Shown { topology: true, ..Shown::NOTHING })?;
    let mut tuner = PolicyTuner::new(Arc::new(frozen.policy()), None);
    let export = csv::export(&mut tuner, &asking, &remarks(frozen, &cluster, &asking));
    Ok((export.table.to_string().into_bytes(), Rules::new(&cluster, &asking, &export)))
}

/// What stands above the rules.
fn remarks(frozen: &Frozen, cluster: &Cluster, asking: &Asking) -> Vec<String> {
    let communicator = asking.communicator();
    let (nodes, ranks, nccl) = (communicator.nodes(), communicator.ranks(), communicator.version());
    vec![
        format!(
            "policy {} {:016x}, dynamiccl {}",
            frozen.about.name,
            frozen.hash(),
            env!("CARGO_PKG_VERSION")
        ),
        format!("cluster {}, {nodes} nodes, {ranks} ranks, NCCL {nccl}", cluster.name),
        "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks".to_owned(),
    ]
}
