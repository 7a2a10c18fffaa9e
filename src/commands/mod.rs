//! The commands, each in two steps: its words become a plan, where everything fails that can fail
//! cheaply; then the plan runs.

mod bench;
mod calibrate;
mod simulate;
mod validate;

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::args::{Args, Command};
use crate::exit::Ending;
use crate::session::Session;

/// Runs what the user asked for.
pub fn run(args: &Args) -> Result<Ending> {
    let session = Session::new(&args.global);
    match &args.command {
        Command::Simulate(args) => simulate::run(args, &session),
        Command::Validate(args) => validate::run(args, &session),
        Command::Calibrate(args) => calibrate::run(args, &session),
        Command::Bench => bench::run(&session),
    }
}

/// Fails if there is no file of this name that we may read.
fn check_file(what: &str, path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("{what} {}", path.display()))?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        bail!("{what} {}: it is a folder", path.display());
    }
    Ok(())
}

/// Fails if there is no folder of this name that we may read.
fn check_folder(what: &str, path: &Path) -> Result<()> {
    path.read_dir().with_context(|| format!("{what} {}", path.display()))?;
    Ok(())
}
