//! `live worker`: one rank.

use anyhow::Result;
use dynamiccl_live::worker::{self, Identity};

use crate::exit::Ending;

/// Is a rank until the coordinator ends it.
pub fn run() -> Result<Ending> {
    let identity = Identity::read(|name| std::env::var(name).ok())?;
    worker::run(&identity)?;
    Ok(Ending::Done)
}
