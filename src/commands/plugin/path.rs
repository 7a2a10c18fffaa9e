//! `plugin path`: where the library is.

use std::slice;

use anyhow::{Context, Result};

use super::exports::Exports;
use super::{library, probe};
use crate::args::LibraryArgs;
use crate::commands::machine;
use crate::exit::Ending;
use crate::session::Session;

/// Says it.
pub fn run(args: &LibraryArgs, session: &Session) -> Result<Ending> {
    let library = library::find(args.library.as_deref())?;
    probe::ask(slice::from_ref(&library)).with_context(|| machine::name(&library))?;
    session.report("plugin path", &Exports::new(&library, None))?;
    Ok(Ending::Done)
}
