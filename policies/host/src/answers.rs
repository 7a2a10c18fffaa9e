//! Everything that a plugin says when it is asked as NCCL would ask.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

use crate::env::{self, Handed};
use crate::library::{OpenError, Plugin};
use crate::logger;
use crate::tuner::{self, Decisions};

/// What a plugin says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// The fingerprint of its file; none where that cannot be read any more.
    pub library: Option<String>,
    /// The interfaces that it has.
    pub interfaces: Vec<String>,
    /// The line with which a communicator begins: version, policy, context, mode.
    pub begins: Option<String>,
    /// What it decides; none where it lets no communicator begin.
    pub decisions: Option<Decisions>,
    /// What it hands to NCCL at launch; none where it lets NCCL not begin.
    pub handed: Option<Handed>,
    /// What it says when communicators begin, after that line: its like for the others, and what else there is to say.
    pub notes: Vec<String>,
    /// What it warns of when communicators begin or calls are tuned.
    pub warnings: Vec<String>,
    /// What it warns of when NCCL itself begins.
    pub env_warnings: Vec<String>,
}

/// Opens the library with this path or name and asks it.
pub fn ask(name: impl AsRef<OsStr>) -> Result<Answers, OpenError> {
    let plugin = Plugin::open(name)?;
    let (library, interfaces) = (plugin.fingerprint(), plugin.interfaces());
    let decisions = tuner::decide(&plugin)?;
    let tuner = logger::take();
    let handed = env::handed(&plugin)?;
    let env_warnings = logger::take().warnings;
    let mut infos = tuner.infos.into_iter();
    let (begins, notes) = (infos.next(), infos.collect());
    Ok(Answers {
        library,
        interfaces,
        begins,
        notes,
        decisions,
        handed,
        warnings: tuner.warnings,
        env_warnings,
    })
}
