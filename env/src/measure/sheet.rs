//! CSV files whose columns are found by name.
//!
//! A column may stand anywhere and others may stand between; what matters is that the named ones
//! are there and that every cell can be told apart by file, line and column when it is wrong.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::error::{Fault, MeasureError};

/// Bytes that a CSV file may have.
const MAX_BYTES: u64 = 256 << 20;

/// A CSV file being read.
pub(super) struct Sheet {
    file: PathBuf,
    names: Vec<String>,
    reader: csv::Reader<Box<dyn Read>>,
    record: csv::StringRecord,
}

impl Sheet {
    /// Opens a file and reads its header line.
    pub(super) fn open(file: &Path) -> Result<Sheet, MeasureError> {
        let input = File::open(file).map_err(|e| MeasureError::unreadable(file, &e))?;
        if input.metadata().is_ok_and(|meta| meta.len() > MAX_BYTES) {
            let fault = Fault::new(file, 0, format!("more than {MAX_BYTES} bytes"), "split the file");
            return Err(MeasureError::TooLarge(fault));
        }
        Sheet::new(Box::new(BufReader::new(input.take(MAX_BYTES))), file)
    }

    /// Reads the header line of `input`; `file` only names it.
    pub(super) fn new(input: Box<dyn Read>, file: &Path) -> Result<Sheet, MeasureError> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
        let names = reader.headers().map_err(|e| csv_error(file, &e))?;
        let plain = |name: &str| name.trim().trim_start_matches('\u{feff}').to_lowercase();
        let names: Vec<String> = names.iter().map(plain).collect();
        Ok(Sheet { file: file.to_owned(), names, reader, record: csv::StringRecord::new() })
    }

    /// Refuses a file that lacks one of these columns.
    pub(super) fn require(&self, columns: &[&str]) -> Result<(), MeasureError> {
        let missing: Vec<&str> = columns.iter().copied().filter(|c| !self.has(c)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let remedy = format!("the first line must name the columns {}", columns.join(", "));
        Err(MeasureError::Missing(Fault::new(&self.file, 1, missing.join(", "), remedy)))
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.names.iter().any(|name| name == column)
    }

    /// Goes to the next line; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, MeasureError> {
        self.reader.read_record(&mut self.record).map_err(|e| csv_error(&self.file, &e))
    }

    /// The number of the current line.
    pub(super) fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// A cell of the current line; empty where the line or the header is too short.
    pub(super) fn text(&self, column: &str) -> &str {
        let at = self.names.iter().position(|name| name == column);
        at.and_then(|at| self.record.get(at)).unwrap_or("").trim()
    }

    /// A cell that may be empty.
    pub(super) fn optional<T: FromStr>(&self, column: &str, remedy: &str) -> Result<Option<T>, MeasureError> {
        match self.text(column) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| self.bad(column, remedy)),
        }
    }

    /// A cell that must hold a finite number above zero.
    pub(super) fn positive(&self, column: &str) -> Result<f64, MeasureError> {
        let remedy = "a number above zero is expected";
        let value: Option<f64> = self.optional(column, remedy)?;
        value.filter(|v| v.is_finite() && *v > 0.0).ok_or_else(|| self.bad(column, remedy))
    }

    /// A cell that must hold a whole number above zero.
    pub(super) fn whole<T: FromStr + PartialOrd + From<u8>>(&self, column: &str) -> Result<T, MeasureError> {
        let remedy = "a whole number above zero is expected";
        let value: Option<T> = self.optional(column, remedy)?;
        value.filter(|v| *v > T::from(0)).ok_or_else(|| self.bad(column, remedy))
    }

    /// A cell that must be one of our words; the error names the nearest.
    pub(super) fn word<T>(&self, column: &str) -> Result<T, MeasureError>
    where
        T: FromStr,
        T::Err: ToString,
    {
        self.text(column).parse().map_err(|e: T::Err| self.bad(column, &e.to_string()))
    }

    /// The error for a cell of the current line.
    pub(super) fn bad(&self, column: &str, remedy: &str) -> MeasureError {
        let at = Fault::new(&self.file, self.line(), self.text(column), remedy);
        MeasureError::Bad { what: column.to_owned(), at }
    }

    /// The error for a file without a single line of data.
    pub(super) fn no_rows(&self) -> MeasureError {
        let remedy = "give a file with at least one line below the header";
        MeasureError::NoRows(Fault::new(&self.file, 0, "only a header line", remedy))
    }
}

fn csv_error(file: &Path, error: &csv::Error) -> MeasureError {
    let line = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::Io(e) => MeasureError::unreadable(file, e),
        _ => MeasureError::Bad {
            what: "line".to_owned(),
            at: Fault::new(file, line, error.to_string(), "save the file as UTF-8 CSV"),
        },
    }
}
