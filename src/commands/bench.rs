//! `bench`: how fast the program itself is.

use anyhow::{Result, bail};

use crate::exit::Ending;
use crate::session::Session;

/// Has nothing to check.
pub fn run(_session: &Session) -> Result<Ending> {
    bail!("bench is not there yet")
}
