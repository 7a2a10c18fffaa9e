//! `export`: a policy as a file to deploy, or its decisions on one machine as a table for NVIDIA's tuner.

mod csv;
mod ranges;
mod report;

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::job::Shown;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::policy::PolicyTuner;

use super::machine;
use crate::args::{ExportArgs, ExportFormat};
use crate::atomic::OutFile;
use crate::exit::Ending;
use crate::session::Session;
use report::{Report, Written};

/// Makes the plan and carries it out.
pub fn run(args: &ExportArgs, session: &Session) -> Result<Ending> {
    let frozen = Frozen::open(&args.policy)?;
    let mut out = OutFile::create(&args.out)?;
    let (bytes, written) = match args.format {
        ExportFormat::Policy => policy(args, &frozen)?,
        ExportFormat::NcclCsv => table(args, &frozen)?,
    };
    out.write_all(&bytes).with_context(|| format!("cannot write {}", args.out.display()))?;
    out.commit()?;
    session.report("export", &Report::new(args, &frozen, written))?;
    Ok(Ending::Done)
}

fn policy(args: &ExportArgs, frozen: &Frozen) -> Result<(Vec<u8>, Written)> {
    ensure!(
        args.nodes.is_none() && args.machine.cluster.is_none() && args.machine.topo.is_none(),
        "a policy is for every machine; --cluster and --nodes go with --format nccl-csv"
    );
    let bytes = frozen.to_bytes();
    Ok((bytes, Written::policy(frozen)))
}

fn table(args: &ExportArgs, frozen: &Frozen) -> Result<(Vec<u8>, Written)> {
    let nodes =
        args.nodes.context("--format nccl-csv: give --cluster and --nodes, a table is for one machine")?;
    let mut cluster = machine::load(&args.machine)?;
    machine::replace_graphs(&mut cluster, nodes, args.graphs.graph.as_deref())?;
    let options =
        CommOptions { ranks_per_node: args.ranks_per_node, version: args.nccl, ..CommOptions::default() };
    // Who asks for the table of a machine knows the machine.
    let asking = Asking::new(&cluster, nodes, &options, Shown { topology: true, ..Shown::NOTHING })?;
    let mut tuner = PolicyTuner::new(Arc::new(frozen.policy()), None);
    let export = csv::export(&mut tuner, &asking, &remarks(frozen, &cluster, &asking));
    Ok((export.table.to_string().into_bytes(), Written::table(&cluster, &asking, &export)))
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
