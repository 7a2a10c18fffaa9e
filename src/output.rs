//! Where words go: results to stdout, as text or as one JSON document; talk to stderr.
//!
//! A reader that closes the pipe (`| head`) has read enough, so that is not an error.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};
use serde::Serialize;

/// Number of the JSON documents' form; it grows when a field goes away or changes its meaning.
const SCHEMA: u32 = 1;

/// How much a command says beside its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The result only (`-q`).
    Quiet,
    /// What a person needs to follow it.
    Normal,
    /// The decisions too (`-v`).
    Verbose,
}

/// The two ways out of a command.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Whether the result is a JSON document.
    pub json: bool,
    /// How much is said beside it.
    pub verbosity: Verbosity,
}

/// What stands around every report in JSON.
#[derive(Serialize)]
struct Document<'a, R> {
    schema: u32,
    command: &'a str,
    seed: u64,
    #[serde(flatten)]
    report: &'a R,
}

impl Output {
    /// Writes the result of `command` to stdout.
    pub fn report(&self, command: &str, seed: u64, report: &(impl Serialize + Display)) -> Result<()> {
        let text = if self.json { document(command, seed, report)? } else { page(command, seed, report) };
        deliver(&text, &mut io::stdout().lock()).context("cannot write to stdout")
    }

    /// The document that [`Output::report`] writes as JSON, for a file.
    pub fn document(&self, command: &str, seed: u64, report: &impl Serialize) -> Result<String> {
        document(command, seed, report)
    }

    /// Writes one line of JSON to stdout, for a command that has many.
    pub fn line(&self, command: &str, seed: u64, report: &impl Serialize) -> Result<()> {
        deliver(&document(command, seed, report)?, &mut io::stdout().lock()).context("cannot write to stdout")
    }

    /// Says something that is not the result; silent with `-q`.
    pub fn note(&self, words: fmt::Arguments<'_>) {
        self.say(Verbosity::Normal, words);
    }

    /// Says something that only `-v` asks for.
    pub fn detail(&self, words: fmt::Arguments<'_>) {
        self.say(Verbosity::Verbose, words);
    }

    fn say(&self, from: Verbosity, words: fmt::Arguments<'_>) {
        if self.verbosity >= from {
            // Talk is never worth failing for.
            let _ = writeln!(io::stderr(), "{words}");
        }
    }
}

/// The report as one line of JSON.
fn document(command: &str, seed: u64, report: &impl Serialize) -> Result<String> {
    let document = Document { schema: SCHEMA, command, seed, report };
    let mut text = serde_json::to_string(&document).context("cannot write the result as JSON")?;
    text.push('\n');
    Ok(text)
}

/// The report as text, under a line that says what it is.
fn page(command: &str, seed: u64, report: &impl Display) -> String {
    format!("# dynamiccl {} {command}, seed {seed}\n{report}", env!("CARGO_PKG_VERSION"))
}

fn deliver(text: &str, out: &mut impl Write) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Timing {
        micros: f64,
    }

    /// A writer that always fails in the same way.
    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_document_says_what_it_is() {
        let text = document("bench", 7, &Timing { micros: 12.5 }).unwrap();
        assert_eq!(text, "{\"schema\":1,\"command\":\"bench\",\"seed\":7,\"micros\":12.5}\n");
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        assert!(deliver("x", &mut Failing(ErrorKind::BrokenPipe)).is_ok());
        assert!(deliver("x", &mut Failing(ErrorKind::StorageFull)).is_err());
    }
}
