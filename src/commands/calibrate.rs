//! `calibrate`: a cluster file fitted to what nccl-tests measured on the machine.

use anyhow::{Result, bail};
use dynamiccl_env::cluster::Cluster;

use super::check_file;
use crate::args::CalibrateArgs;
use crate::atomic::OutFile;
use crate::exit::Ending;
use crate::session::Session;

/// Checks the plan.
pub fn run(args: &CalibrateArgs, _session: &Session) -> Result<Ending> {
    check_file("log", &args.log)?;
    let _cluster = Cluster::load(&args.cluster)?;
    let _out = OutFile::create(&args.out)?;
    bail!("calibrate is not there yet")
}
