//! What every command has, whatever it does: the seed, the cores, the way out, progress and Ctrl-C.
//!
//! This is the second stage of the global arguments. They are words; here they have their meaning.

use std::cell::OnceCell;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal};
use std::thread;

use anyhow::Result;
use serde::Serialize;

use crate::args::{GlobalArgs, SeedArg};
use crate::interrupt::Interrupt;
use crate::output::{Output, Verbosity};
use crate::progress::{Progress, Style};

/// The seed where nobody says.
pub const USUAL_SEED: u64 = 1;

/// Threads of work that nobody has said how many to use for.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// The surroundings of one command.
#[derive(Debug)]
pub struct Session {
    /// The seed of everything random; a command puts it into its report.
    pub seed: u64,
    /// Whether somebody has asked for that seed.
    pub seed_given: bool,
    /// Where the result and the talk go.
    pub output: Output,
    style: Style,
    interrupt: OnceCell<Interrupt>,
}

impl Session {
    /// Gives the global arguments their meaning.
    pub fn new(args: &GlobalArgs) -> Self {
        let verbosity = match (args.quiet, args.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        };
        let output = Output { json: args.json, verbosity };
        // A terminal that cannot go back in its line gets plain lines.
        let moves = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let terminal = io::stderr().is_terminal() && moves;
        let style = Style::resolve(args.progress, args.quiet || args.json, terminal);
        let seed_given = args.seed.is_some();
        let seed = seed(args.seed.unwrap_or(SeedArg::Fixed(USUAL_SEED)));
        let session = Session { seed, seed_given, output, style, interrupt: OnceCell::new() };
        if args.seed == Some(SeedArg::Random) {
            session.output.note(format_args!("seed {}", session.seed));
        }
        session
    }

    /// Writes the result of `command` to stdout, with the seed that made it.
    pub fn report(&self, command: &str, report: &(impl Serialize + Display)) -> Result<()> {
        self.output.report(command, self.seed, report)
    }

    /// Ctrl-C, caught from here on.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.get_or_init(Interrupt::catch).clone()
    }

    /// Shows the progress of work in `total` steps; from here on, Ctrl-C is caught.
    pub fn progress(&self, label: &str, total: u64) -> Progress {
        Progress::start(label, total, self.style, self.interrupt())
    }
}

fn seed(arg: SeedArg) -> u64 {
    match arg {
        SeedArg::Fixed(seed) => seed,
        // The standard library keys every RandomState from the system's randomness. 32 bits keep
        // the number short enough to type again.
        SeedArg::Random => RandomState::new().build_hasher().finish() >> 32,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    fn session(words: &str) -> Session {
        let words = format!("dynamiccl bench {words}");
        Session::new(&Args::try_parse_from(words.split_whitespace()).unwrap().global)
    }

    #[test]
    fn the_seed_is_1_unless_said_otherwise() {
        assert_eq!(session("").seed, 1);
        assert_eq!(session("--seed 7").seed, 7);
        assert_ne!(session("-q --seed random").seed, session("-q --seed random").seed);
    }

    #[test]
    fn q_and_v_set_the_tone() {
        assert_eq!(session("-q").output.verbosity, Verbosity::Quiet);
        assert_eq!(session("").output.verbosity, Verbosity::Normal);
        assert_eq!(session("-vv").output.verbosity, Verbosity::Verbose);
        assert!(session("--json").output.json);
    }
}
