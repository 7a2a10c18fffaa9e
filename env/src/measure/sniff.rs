//! One door for every kind of log: JSON, text and CSV tell themselves apart.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dynamiccl_spec::Collective;

use super::error::{Fault, MeasureError};
use super::sheet::Sheet;
use super::sweep;
use super::{Log, nccl_tests_json, nccl_tests_text, tables};

/// Reads a log of any kind; `told` overrides what a log of nccl-tests says it measured.
pub fn read_log_as(file: &Path, told: Option<Collective>) -> Result<Log, MeasureError> {
    let mut start = Vec::new();
    let input = File::open(file).map_err(|e| MeasureError::unreadable(file, &e))?;
    input.take(4096).read_to_end(&mut start).map_err(|e| MeasureError::unreadable(file, &e))?;
    match kind_of(&start) {
        Kind::Json => nccl_tests_json::read(file, told),
        Kind::Csv => read_csv(Sheet::open(file)?, file),
        Kind::Text => nccl_tests_text::read(file, told),
        Kind::Binary => {
            let remedy = "give a text log, JSON or CSV, as UTF-8 and not compressed";
            Err(MeasureError::NoRows(Fault::new(file, 0, "not a text file", remedy)))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Csv,
    Text,
    Binary,
}

fn kind_of(start: &[u8]) -> Kind {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    if start.contains(&0) {
        return Kind::Binary;
    }
    let text = String::from_utf8_lossy(start);
    let first = text.lines().next().unwrap_or("").to_lowercase();
    let columns: Vec<&str> = first.split(',').map(str::trim).collect();
    if text.trim_start().starts_with('{') {
        Kind::Json
    } else if columns.contains(&"collective") && columns.len() > 2 {
        Kind::Csv
    } else {
        Kind::Text
    }
}

/// Reads a sweep or the rows of one collected table as a log.
fn read_csv(mut sheet: Sheet, file: &Path) -> Result<Log, MeasureError> {
    let is_sweep = sheet.has("median_us");
    if is_sweep {
        sheet.require(&sweep::COLUMNS)?;
        if !sheet.has("nthreads") {
            own_threads_beside(file)?;
        }
    } else {
        sheet.require(&["collective", "size_bytes", "time_us"])?;
    }
    let mut log = Log::default();
    let mut source: Option<String> = None;
    let (mut left_out, mut other_chunks) = (0, 0);
    while sheet.advance()? {
        let this = if is_sweep {
            let [ranks, link, threads] = ["ranks", "link", "nthreads"].map(|column| sheet.text(column));
            format!("{ranks} ranks, {link} {threads}").trim_end().to_owned()
        } else {
            sheet.text("table_id").to_owned()
        };
        if source.as_ref().is_some_and(|source| *source != this) {
            let fault = Fault::new(file, sheet.line(), this, "give a file with rows of one communicator");
            return Err(MeasureError::Mixed(fault));
        }
        source = Some(this);
        if is_sweep {
            of_own_threads(&sheet)?;
            log.ranks = Some(sheet.whole("ranks")?);
            match sweep::row_of(&sheet)?.plain() {
                Some(row) => log.rows.push(row),
                None => other_chunks += 1,
            }
        } else {
            match tables::row_of(&sheet, None)? {
                Some(row) => log.rows.push(row),
                None => left_out += 1,
            }
        }
    }
    if left_out > 0 {
        log.warnings.push(format!("{left_out} rows without a time left out"));
    }
    if other_chunks > 0 {
        log.warnings.push(format!("{other_chunks} rows with chunk sizes other than NCCL's own left out"));
    }
    if log.rows.is_empty() { Err(sheet.no_rows()) } else { Ok(log) }
}

/// What to do with a sweep of other threads than NCCL's own: a log says nothing of threads.
const NO_LOG: &str = "give it as a sweep, not as a log: a log has NCCL's own threads";

fn of_own_threads(sheet: &Sheet) -> Result<(), MeasureError> {
    if matches!(sheet.text("nthreads"), "" | "0") { Ok(()) } else { Err(sheet.bad("nthreads", NO_LOG)) }
}

fn own_threads_beside(file: &Path) -> Result<(), MeasureError> {
    let Some(threads) = sweep::threads_beside(file)? else { return Ok(()) };
    let at = Fault::new(&sweep::About::path(file), 0, threads.to_string(), NO_LOG);
    Err(MeasureError::Bad { what: "threads".to_owned(), at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_tell_themselves_apart() {
        assert_eq!(kind_of(b"\xef\xbb\xbf  {\"version\":1}"), Kind::Json);
        assert_eq!(kind_of(b"table_id,collective,size_bytes,time_us\n"), Kind::Csv);
        assert_eq!(kind_of(b"# nThread 1 nGpus 8, and so on"), Kind::Text);
        assert_eq!(kind_of(b"\x1f\x8b\x08\x00"), Kind::Binary);
        assert_eq!(kind_of(b""), Kind::Text);
    }
}
