//! `simulate`: the true and the NCCL-predicted time of every knob setting of one call.

use anyhow::{Result, bail};
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_spec::Overrides;

use crate::args::SimulateArgs;
use crate::exit::Ending;
use crate::session::Session;

/// Checks the plan.
pub fn run(args: &SimulateArgs, _session: &Session) -> Result<Ending> {
    if args.bytes.0 == 0 {
        bail!("--bytes 0: there is nothing to send");
    }
    let options = CommOptions {
        ranks_per_node: args.ranks_per_node,
        sharp: args.sharp,
        version: args.nccl,
        overrides: Overrides::default(),
    };
    let _communicator = Cluster::load(&args.cluster)?.communicator(args.nodes, &options)?;
    let _constants = ConstantsFile::load(&args.constants.constants)?;
    bail!("simulate is not there yet")
}
