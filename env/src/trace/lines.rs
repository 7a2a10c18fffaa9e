//! Lines of a trace as JSON objects, in bounded memory.

use std::io::{self, BufRead, Read};
use std::path::Path;

use super::error::TraceError;
use super::fields::Fields;
use crate::measure::Fault;

/// Bytes of one line; a header with ten thousands of communicators fits.
const LINE_MAX: u64 = 16 << 20;

/// Reads a file line by line.
pub(super) struct Lines<'a, R> {
    input: R,
    file: &'a Path,
    number: u64,
}

impl<'a, R: BufRead> Lines<'a, R> {
    /// Lines of `input`, which is called `file`.
    pub(super) fn new(input: R, file: &'a Path) -> Self {
        Lines { input, file, number: 0 }
    }

    /// The object on the next line that is not blank.
    pub(super) fn next(&mut self) -> Result<Option<Fields<'a>>, TraceError> {
        loop {
            let mut bytes = Vec::new();
            self.number += 1;
            let limited = (&mut self.input).take(LINE_MAX + 1).read_until(b'\n', &mut bytes);
            let read = limited.map_err(|e: io::Error| TraceError::unreadable(self.file, &e))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 > LINE_MAX {
                let start = String::from_utf8_lossy(&bytes[..200]).into_owned();
                let remedy = format!("a line may have {} MiB: one call per line", LINE_MAX >> 20);
                return Err(TraceError::LongLine(self.fault(&start, &remedy)));
            }
            let text = std::str::from_utf8(&bytes).map_err(|_| {
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                TraceError::NotText(self.fault(&shown, "give plain text, not compressed"))
            })?;
            let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text };
            if !text.trim().is_empty() {
                return Fields::parse(text.trim(), self.file, self.number).map(Some);
            }
        }
    }

    /// A fault at the current line.
    pub(super) fn fault(&self, value: &str, remedy: &str) -> Fault {
        Fault::new(self.file, self.number, value, remedy)
    }
}
