//! `live`: the same questions, asked of real NCCL on real ranks.

mod eval;
mod guard;
pub(super) mod job;
mod known;
pub(super) mod lived;
mod missing;
mod post;
mod sweep;
mod worker;

use anyhow::Result;

use super::live_train;
use crate::args::{LiveArgs, LiveCommand};
use crate::exit::Ending;
use crate::session::Session;

/// Does what was asked for.
pub fn run(args: &LiveArgs, session: &Session) -> Result<Ending> {
    match &args.command {
        LiveCommand::Sweep(args) => sweep::run(args, session),
        LiveCommand::Eval(args) => eval::run(args, session),
        LiveCommand::Guard => guard::run(),
        LiveCommand::Worker => worker::run(),
        LiveCommand::Train(args) => live_train::run(args, session),
    }
}
