//! `live guard`: sees to it that nothing is left of a run.

use std::io;

use anyhow::Result;
use dynamiccl_live::launch::watch;

use crate::exit::Ending;
use crate::interrupt::outlive;

/// Is a guard until its run is over. Whoever ends a whole job at once sends signals to all of it, some more than once: they
/// are no reason to go before what is left is taken away.
pub fn run() -> Result<Ending> {
    outlive();
    watch(io::stdin().lock());
    Ok(Ending::Done)
}
