//! The readers of measurements, over small hand-made files in every known format.

mod csv_files;
mod json_logs;
mod robustness;
mod text_logs;

use std::path::{Path, PathBuf};

use dynamiccl_env::measure::{Log, MeasureError, read_log_as};

/// A file of `tests/data/logs`.
fn log_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)
}

/// A log that says itself what it measured.
fn read_log(file: &Path) -> Result<Log, MeasureError> {
    read_log_as(file, None)
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).expect("a temporary file");
    }
    dir
}
