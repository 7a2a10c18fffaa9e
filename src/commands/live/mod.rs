//! `live`: the same questions, asked of real NCCL on real ranks.

use anyhow::Result;

use super::live_train;
use crate::args::{LiveArgs, LiveCommand};
use crate::exit::Ending;
use crate::session::Session;

/// Does what was asked for.
pub fn run(args: &LiveArgs, session: &Session) -> Result<Ending> {
    match &args.command {
        LiveCommand::Train(args) => live_train::run(args, session),
    }
}
