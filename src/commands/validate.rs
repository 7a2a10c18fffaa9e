//! `validate`: the simulator against measurements.

use anyhow::{Result, bail};
use dynamiccl_env::model::ConstantsFile;

use super::check_folder;
use crate::args::ValidateArgs;
use crate::exit::Ending;
use crate::session::Session;

/// Checks the plan.
pub fn run(args: &ValidateArgs, _session: &Session) -> Result<Ending> {
    for folder in [&args.data.sweeps, &args.data.tables].into_iter().flatten() {
        check_folder("measurements", folder)?;
    }
    let _constants = ConstantsFile::load(&args.constants.constants)?;
    bail!("validate is not there yet")
}
