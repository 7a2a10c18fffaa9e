//! `plugin path`: where the library is.

use anyhow::Result;

use super::exports::Exports;
use super::library;
use crate::args::LibraryArgs;
use crate::exit::Ending;
use crate::session::Session;

/// Says it.
pub fn run(args: &LibraryArgs, session: &Session) -> Result<Ending> {
    let library = library::find(args.library.as_deref())?;
    session.report("plugin path", &Exports::new(&library, None))?;
    Ok(Ending::Done)
}
