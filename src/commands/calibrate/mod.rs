//! `calibrate`: a cluster file fitted to what nccl-tests measured on the machine.

mod fit;
mod logs;
mod report;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use dynamiccl_env::cluster::CommOptions;
use dynamiccl_env::model::ConstantsFile;

use super::machine::{self, name};
use crate::args::CalibrateArgs;
use crate::atomic::OutFile;
use crate::exit::Ending;
use crate::session::Session;
use fit::Fit;
use logs::Measured;
use report::Report;

/// Makes the plan and carries it out.
pub fn run(args: &CalibrateArgs, session: &Session) -> Result<Ending> {
    let out_path = args.out.display();
    ensure!(
        args.out.extension().is_some_and(|e| e == "toml"),
        "--out {out_path}: a cluster file ends in .toml"
    );
    let mut cluster = machine::load(&args.machine)?;
    let constants = ConstantsFile::load(&args.constants.constants)?.nominal();
    let mut out = OutFile::create(&args.out)?;
    let measured = Measured::read(args, &cluster)?;
    machine::replace_graphs(&mut cluster, measured.nodes, args.graphs.graph.as_deref())?;
    let options = CommOptions {
        ranks_per_node: Some(measured.local),
        version: measured.version,
        ..CommOptions::default()
    };
    let communicator = cluster.communicator(measured.nodes, &options)?;
    let fit =
        Fit::new(&cluster, &communicator, &measured.rows, &constants).with_context(|| names(&args.log))?;
    let report = Report::new(args, &cluster, &measured, &fit);
    let text = format!("# {}\n{}", report.provenance(), fit.cluster.to_toml()?);
    out.write_all(text.as_bytes()).with_context(|| format!("cannot write {out_path}"))?;
    out.commit()?;
    session.report("calibrate", &report)?;
    Ok(Ending::Done)
}

/// The logs on one line.
fn names(logs: &[PathBuf]) -> String {
    logs.iter().map(|log| name(log)).collect::<Vec<_>>().join(", ")
}
