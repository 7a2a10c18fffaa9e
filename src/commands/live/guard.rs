//! `live guard`: sees to it that nothing is left of a run.

use std::io;

use anyhow::Result;
use dynamiccl_live::launch::watch;

use crate::exit::Ending;
use crate::session::Session;

/// Is a guard until its run is over. Whoever ends a whole job at once sends it a signal first: that is no reason to go.
pub fn run(session: &Session) -> Result<Ending> {
    let _caught = session.interrupt();
    watch(io::stdin().lock());
    Ok(Ending::Done)
}
