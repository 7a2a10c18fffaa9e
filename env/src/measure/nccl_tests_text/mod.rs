//! The text that nccl-tests prints, from the first releases to 2.19.
//!
//! A log is rarely just that text: NCCL's own messages stand between and inside the rows, several
//! runs follow each other, and jobs die. So the reader collects the tokens of a row over as many
//! lines as it takes, skips what is not nccl-tests', and refuses what breaks off in the middle.

mod closing;
mod layout;
mod noise;
mod reader;
mod section;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use dynamiccl_spec::{Collective, release};

use super::Log;
use super::error::MeasureError;
use super::lines::Lines;
use reader::Reader;

/// Reads an nccl-tests log. `told` overrides whatever the log says it measured.
pub fn read(file: &Path, told: Option<Collective>) -> Result<Log, MeasureError> {
    let input = File::open(file).map_err(|e| MeasureError::unreadable(file, &e))?;
    parse(BufReader::new(input), file, told)
}

/// Reads the lines of `input`; `file` only names it.
pub(super) fn parse(input: impl BufRead, file: &Path, told: Option<Collective>) -> Result<Log, MeasureError> {
    let mut reader = Reader::new(file, told);
    let mut lines = Lines::new(input);
    while let Some((number, line)) = lines.next().map_err(|e| MeasureError::unreadable(file, &e))? {
        reader.line(number, &line)?;
    }
    reader.finish()
}

/// The release that the library's number says, as `2.28.3`.
pub(super) fn version_of(code: u64) -> Option<String> {
    release::of_code(code).map(|[major, minor, patch]| format!("{major}.{minor}.{patch}"))
}
