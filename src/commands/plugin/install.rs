//! `plugin install`: the library where jobs find it, under every name that NCCL may look for.
//!
//! A new file takes the name of the old, and nothing is written into that: who has it open keeps it. But NCCL closes the
//! library when the last communicator of a process ends, and opens what then has its name for the next.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::slice;

use anyhow::{Context, Result, bail};

use super::exports::Exports;
use super::library::{self, BUILT, PREFIXES, WORD};
use super::probe;
use crate::args::InstallArgs;
use crate::atomic::OutFile;
use crate::commands::machine;
use crate::exit::Ending;
use crate::session::Session;

/// Copies it.
pub fn run(args: &InstallArgs, session: &Session) -> Result<Ending> {
    let source = library::find(args.library.as_deref())?;
    probe::ask(slice::from_ref(&source)).with_context(|| machine::name(&source))?;
    let cannot = || format!("--to {}", machine::name(&args.to));
    fs::create_dir_all(&args.to).with_context(cannot)?;
    let folder = args.to.canonicalize().with_context(cannot)?;
    let target = folder.join(BUILT);
    let links = PREFIXES.map(|prefix| folder.join(format!("{prefix}-{WORD}.so")));
    links.iter().try_for_each(|name| replaceable(name))?;
    let mut copy = OutFile::create(&target)?;
    let replaces = is_another(&target, &source);
    let mut from = fs::File::open(&source).with_context(|| machine::name(&source))?;
    io::copy(&mut from, &mut copy).with_context(|| format!("cannot write {}", machine::name(&target)))?;
    copy.commit()?;
    let mut installed = vec![machine::name(&target)];
    for name in &links {
        link(name).with_context(|| format!("cannot write {}", machine::name(name)))?;
        installed.push(machine::name(name));
    }
    if replaces {
        session.output.note(format_args!(
            "warning: {} was another library. Ranks of a running job whose communicators have all ended open the new one, and \
             the others keep the old: they may hang. Give a new library a new folder while jobs run",
            machine::name(&target)
        ));
    }
    session.report("plugin install", &Exports::new(&target, Some(installed)))?;
    Ok(Ending::Done)
}

/// Whether something else than the source has this name.
fn is_another(target: &Path, source: &Path) -> bool {
    let is_same = || Some(fs::read(target).ok()? == fs::read(source).ok()?);
    target.exists() && is_same() != Some(true)
}

/// An error where a link cannot take the place of what has this name: looked at before anything is replaced, for a new
/// library with a part of its names is worse than the old one.
fn replaceable(name: &Path) -> Result<()> {
    // A link to a folder is replaced like any other.
    if name.symlink_metadata().is_ok_and(|there| there.is_dir()) {
        bail!("cannot write {}: it is a folder", machine::name(name));
    }
    Ok(())
}

/// Lets a name lead to the library beside it, at once or not at all. A link and not a copy: NCCL's interfaces then
/// share one library, whichever names they were given.
fn link(name: &Path) -> io::Result<()> {
    let under_way = name.with_extension(format!("so.{}.tmp", std::process::id()));
    symlink(BUILT, &under_way)?;
    fs::rename(&under_way, name).inspect_err(|_| drop(fs::remove_file(&under_way)))
}
