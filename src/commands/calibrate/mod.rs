//! `calibrate`: a cluster file fitted to what nccl-tests or `live sweep` measured on the machine.

mod fit;
mod logs;
mod report;
mod sweeps;

use std::path::PathBuf;

use anyhow::{Context, Result};
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::ConstantsFile;

use super::machine::{self, name};
use crate::args::CalibrateArgs;
use crate::atomic::{Apart, OutFile, ends_in};
use crate::exit::Ending;
use crate::session::Session;
use fit::{Fit, Samples};
use logs::Measured;
use report::{Report, Source};
use sweeps::Swept;

/// Makes the plan and carries it out.
pub fn run(args: &CalibrateArgs, session: &Session) -> Result<Ending> {
    ends_in("--out", &args.out, &["toml"], "a cluster file")?;
    let mut cluster = machine::load(&args.machine)?;
    let constants = ConstantsFile::load(&args.constants.constants)?.nominal();
    apart(args)?;
    OutFile::probe(&args.out)?;
    let (samples, source) = measure(args, &mut cluster)?;
    let files = if args.log.is_empty() { &args.sweep } else { &args.log };
    let fit = Fit::new(&cluster, samples, &constants).with_context(|| names(files))?;
    let report = Report::new(args, &cluster, source, &fit);
    let text = format!("# {}\n{}", report.provenance(), fit.cluster.to_toml()?);
    readable(&name(&args.out), &text).with_context(|| names(files))?;
    OutFile::create(&args.out)?.finish(text.as_bytes())?;
    session.report("calibrate", &report)?;
    Ok(Ending::Done)
}

/// Makes sure that nothing is written over what was measured. The file of --cluster may be: that is how a
/// description is brought up to date.
fn apart(args: &CalibrateArgs) -> Result<()> {
    Apart::default()
        .reads("--log", &args.log)
        .reads("--sweep", &args.sweep)
        .reads("--topo", &args.machine.topo)
        .reads("--graph", &args.graphs.graph)
        .reads("--constants", [&args.constants.constants])
        .writes("--out", [&args.out])?;
    Ok(())
}

/// An error where no command would read the file: the machine is too far from any that there is.
fn readable(file: &str, text: &str) -> Result<()> {
    let read = Cluster::from_toml(file, text).map(|_| ());
    read.context("no machine is so far from its description; check --cluster, --nodes and the times")
}

/// What the logs or the sweeps measured, and where.
fn measure(args: &CalibrateArgs, cluster: &mut Cluster) -> Result<(Samples, Source)> {
    if args.log.is_empty() {
        let swept = Swept::read(args, cluster)?;
        return Ok((swept.samples, swept.source));
    }
    let measured = Measured::read(args, cluster)?;
    machine::replace_graphs(cluster, measured.nodes, args.graphs.graph.as_deref())?;
    let options = CommOptions {
        ranks_per_node: Some(measured.local),
        version: measured.version,
        ..CommOptions::default()
    };
    let communicator = cluster.communicator(measured.nodes, &options)?;
    let samples = Samples::of_rows(cluster, communicator, &measured.rows);
    Ok((samples, measured.into()))
}

/// Files on one line.
fn names(logs: &[PathBuf]) -> String {
    logs.iter().map(|log| name(log)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_command_would_read_is_not_written() {
        let mut cluster = Cluster::load("dgx_a100").unwrap();
        assert!(readable("mine.toml", &cluster.to_toml().unwrap()).is_ok());
        cluster.calibration.launch = 243.5;
        let error = format!("{:#}", readable("mine.toml", &cluster.to_toml().unwrap()).unwrap_err());
        assert!(error.contains("mine.toml: calibration.launch = 243.5: must be 0.01 to 100"), "{error}");
    }
}
