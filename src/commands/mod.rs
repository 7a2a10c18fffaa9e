//! The commands, each in two steps: its words become a plan, where everything fails that can fail
//! cheaply; then the plan runs.

mod actor;
mod bench;
mod calibrate;
mod check_env;
mod decide;
mod eval;
mod export;
mod inspect;
mod live;
mod live_train;
mod machine;
mod plugin;
mod policy_file;
mod rails;
mod simulate;
mod synth;
mod train;
mod tune;
mod validate;
mod wan;

use anyhow::Result;

use crate::args::{Args, Command};
use crate::exit::Ending;
use crate::session::Session;

/// Runs what the user asked for.
pub fn run(args: &Args) -> Result<Ending> {
    let session = Session::new(&args.global);
    match &args.command {
        Command::Simulate(args) => simulate::run(args, &session),
        Command::Validate(args) => validate::run(args, &session),
        Command::Calibrate(args) => calibrate::run(args, &session),
        Command::Tune(args) => tune::run(args, &session),
        Command::Synth(args) => synth::run(args, &session),
        Command::Decide(args) => decide::run(args, &session),
        Command::CheckEnv(args) => check_env::run(args, &session),
        Command::Train(args) => train::run(args, &session),
        Command::Eval(args) => eval::run(args, &session),
        Command::Inspect(args) => inspect::run(args, &session),
        Command::Export(args) => export::run(args, &session),
        Command::Wan(args) => wan::run(args, &session),
        Command::Plugin(args) => plugin::run(args, &session),
        Command::Rails(args) => rails::run(args, &session),
        Command::Live(args) => live::run(args, &session),
        Command::Bench => bench::run(&session),
    }
}
