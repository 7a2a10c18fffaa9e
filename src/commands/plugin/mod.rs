//! `plugin`: the library that NCCL loads. It is opened as NCCL would open it, and never linked.

mod doctor;
mod exports;
mod install;
pub mod library;
mod path;
mod probe;

use anyhow::Result;

use crate::args::{PluginArgs, PluginCommand};
use crate::exit::Ending;
use crate::session::Session;

/// Does what was asked for.
pub fn run(args: &PluginArgs, session: &Session) -> Result<Ending> {
    match &args.command {
        PluginCommand::Path(args) => path::run(args, session),
        PluginCommand::Install(args) => install::run(args, session),
        PluginCommand::Doctor(args) => doctor::run(args, session),
        PluginCommand::Probe(args) => probe::run(args, session),
    }
}
