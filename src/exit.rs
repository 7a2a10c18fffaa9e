//! Exit codes and the last line a failed command prints.
//!
//! Scripts branch on these numbers, so they are part of the interface: they stand in `--help`, and a
//! change here is a breaking change.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::interrupt::Interrupted;

/// The command did what it was asked to do.
const DONE: u8 = 0;
/// The command ran, and the answer is no.
const NO: u8 = 1;
/// Usage, configuration, input or backend error.
const ERROR: u8 = 2;
/// Ctrl-C, after saving what could be saved; the number that shells give a SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Characters of one cause that are shown.
const LONGEST: usize = 1000;

/// How a command ended that met no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was asked to do.
    Done,
    /// It ran, and the verdict is no.
    No,
}

/// Prints the error, if there is one, and gives the process its exit code.
pub fn finish(result: anyhow::Result<Ending>) -> ExitCode {
    if let Err(error) = &result {
        // Nobody is left to tell if stderr is gone.
        let _ = writeln!(io::stderr(), "{}", line(error));
    }
    ExitCode::from(code(&result))
}

/// Prints what clap has to say: help and version end well, anything else is a usage error.
pub fn usage(message: &clap::Error) -> ExitCode {
    // A reader that closed the pipe has read enough.
    let _ = message.print();
    ExitCode::from(if message.use_stderr() { ERROR } else { DONE })
}

fn code(result: &anyhow::Result<Ending>) -> u8 {
    match result {
        Ok(Ending::Done) => DONE,
        Ok(Ending::No) => NO,
        Err(error) if error.is::<Interrupted>() => INTERRUPTED,
        Err(_) => ERROR,
    }
}

/// The whole chain of causes on one line, so that `grep error:` finds all of it.
fn line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = short(&cause.to_string());
        // Some libraries repeat their cause in their own text.
        if line.is_empty() {
            line = cause;
        } else if !line.ends_with(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    if error.is::<Interrupted>() { line } else { format!("error: {line}") }
}

/// A text in one line that a terminal can show, cut where it is a file's rather than ours.
fn short(text: &str) -> String {
    let shown: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST + 1).collect();
    let cut = if shown.chars().count() > LONGEST { " ..." } else { "" };
    let kept: String = shown.chars().take(LONGEST).collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ") + cut
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn every_ending_has_its_code() {
        assert_eq!(code(&Ok(Ending::Done)), 0);
        assert_eq!(code(&Ok(Ending::No)), 1);
        assert_eq!(code(&Err(anyhow!("no such file"))), 2);
        assert_eq!(code(&Err(Interrupted.into())), 130);
        assert_eq!(code(&Err::<Ending, _>(Interrupted).context("while fitting")), 130);
    }

    #[test]
    fn the_error_line_joins_the_causes() {
        let error = anyhow!("line 3 has 7 columns").context("reading x.csv").context("validate");
        assert_eq!(line(&error), "error: validate: reading x.csv: line 3 has 7 columns");
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("no such file").context("a.toml: no such file");
        assert_eq!(line(&error), "error: a.toml: no such file");
    }

    #[test]
    fn the_error_line_is_one_line() {
        let error = anyhow!("TOML parse error at line 2\n  |\n2 | nodes = x\n").context("a.toml");
        assert_eq!(line(&error), "error: a.toml: TOML parse error at line 2 | 2 | nodes = x");
    }

    #[test]
    fn what_a_file_says_neither_floods_a_terminal_nor_speaks_to_it() {
        let said = line(&anyhow!("\u{1b}[2J{}", "x".repeat(1 << 20)));
        assert!(
            said.len() < 1100 && said.starts_with("error: [2Jx") && said.ends_with("x ..."),
            "{}",
            said.len()
        );
    }

    #[test]
    fn an_interruption_is_not_called_an_error() {
        assert_eq!(line(&Interrupted.into()), "interrupted");
    }
}
