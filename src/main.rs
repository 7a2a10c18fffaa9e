//! The command line: parse the words, run the command, answer with an exit code.
//!
//! Everything here is about people and scripts: arguments, plans, tables, progress, exit codes. What
//! a time is and what a good decision is belongs to the library crates.
#![forbid(unsafe_code)]

mod args;
mod atomic;
mod commands;
mod exit;
mod interrupt;
mod launcher;
mod output;
mod page;
mod progress;
mod session;
mod svg;
mod table;
mod words;

use std::process::ExitCode;

use args::Args;

fn main() -> ExitCode {
    match Args::read() {
        Ok(args) => exit::finish(commands::run(&args)),
        Err(usage) => exit::usage(&usage),
    }
}
