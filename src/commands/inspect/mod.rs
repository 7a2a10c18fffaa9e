//! `inspect`: what a file is, and whether this build can run it.

mod policy;
mod report;
mod table;

use std::path::Path;

use anyhow::{Context, Result, bail};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::trace::Trace;
use dynamiccl_policies::frozen::{self, Frozen, SHIPPED};

use super::machine::name;
use super::policy_file::{self, is_shipped, looks_frozen, shipped};
use crate::args::InspectArgs;
use crate::exit::Ending;
use crate::session::Session;
use report::{Report, What};

/// Looks at the file and says what it is.
pub fn run(args: &InspectArgs, session: &Session) -> Result<Ending> {
    let file = args.file.as_deref().filter(|file| !is_shipped(file));
    let Some(file) = file else { return built_in(session) };
    let bytes = frozen::read_bytes(file).with_context(|| format!("{}: cannot be read", name(file)))?;
    let report = Report { file: name(file), bytes: bytes.len(), what: what(file, &bytes)? };
    session.report("inspect", &report)?;
    Ok(if report.what.is_runnable() { Ending::Done } else { Ending::No })
}

/// Says what comes with the program.
fn built_in(session: &Session) -> Result<Ending> {
    let what = What::Policy(Box::new(policy::Runnable::new(&shipped()?)));
    let bytes = Frozen::shipped_bytes().len();
    session.report("inspect", &Report { file: SHIPPED.to_owned(), bytes, what })?;
    Ok(Ending::Done)
}

fn what(file: &Path, bytes: &[u8]) -> Result<What> {
    if looks_frozen(file, bytes) {
        return match Frozen::read(bytes) {
            Ok(frozen) => Ok(What::Policy(Box::new(policy::Runnable::new(&frozen)))),
            Err(why) if why.is_foreign() => {
                let metadata = frozen::metadata(bytes).with_context(|| name(file))?;
                Ok(What::ForeignPolicy { why: why.to_string(), metadata })
            }
            Err(why) => Err(why).with_context(|| name(file)),
        };
    }
    let Ok(text) = str::from_utf8(bytes) else {
        bail!("{}: neither a policy (.safetensors) nor text; give a policy or a table", name(file));
    };
    if let Some(other) = other(file, text)? {
        return Ok(other);
    }
    Ok(What::Table(table::Summary::new(&policy_file::table(file, text)?)))
}

/// Files of ours that other commands read.
fn other(file: &Path, text: &str) -> Result<Option<What>> {
    let is_toml = file.extension().is_some_and(|e| e == "toml");
    let (kind, command) = match text.trim_start().as_bytes().first() {
        Some(b'{') => {
            Trace::read_from(text.as_bytes(), file)
                .context("of what is JSON only a trace can be looked at")?;
            ("trace", format!("check-env trace --trace {}", name(file)))
        }
        _ if !is_toml => return Ok(None),
        _ if Cluster::from_toml(&name(file), text).is_ok() => {
            ("cluster", format!("simulate --cluster {} …", name(file)))
        }
        _ => ("toml", format!("simulate --curriculum {}", name(file))),
    };
    Ok(Some(What::Other { kind, command: format!("dynamiccl {command}") }))
}
