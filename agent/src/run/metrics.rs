//! The file of a run's lines. A line is appended in one piece; what a resumed run will write again is cut off.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::RunError;

/// The lines of a run, to be added to.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: File,
    lines: u64,
}

impl Metrics {
    /// Opens the file, keeping its first lines. Where it has fewer, it goes on with what there is.
    pub fn open(path: &Path, keep: u64) -> Result<Self, RunError> {
        let open = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let file = open.map_err(RunError::write(path))?;
        let mut metrics = Metrics { path: path.to_owned(), file, lines: 0 };
        metrics.cut(keep).map_err(RunError::write(path))?;
        Ok(metrics)
    }

    fn cut(&mut self, keep: u64) -> std::io::Result<()> {
        let mut reader = BufReader::new(&self.file);
        let (mut end, mut line) = (0, Vec::new());
        while self.lines < keep {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            (end, self.lines) = (end + length as u64, self.lines + 1);
        }
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::Start(end)).map(drop)
    }

    /// Appends a line.
    pub fn add(&mut self, line: &str) -> Result<(), RunError> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(RunError::write(&self.path))?;
        self.lines += 1;
        Ok(())
    }

    /// Makes sure that all lines are on the disk, and says how many there are.
    pub fn sync(&mut self) -> Result<u64, RunError> {
        self.file.sync_data().map_err(RunError::write(&self.path))?;
        Ok(self.lines)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_resumed_file_loses_what_will_be_written_again_and_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let mut metrics = Metrics::open(&path, 0).unwrap();
        for line in ["a", "b", "c"] {
            metrics.add(line).unwrap();
        }
        assert_eq!(metrics.sync().unwrap(), 3);
        let mut metrics = Metrics::open(&path, 2).unwrap();
        metrics.add("d").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nd\n");
        fs::write(&path, "a\nb\nto").unwrap();
        let mut metrics = Metrics::open(&path, 9).unwrap();
        metrics.add("e").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), metrics.lines), ("a\nb\ne\n", 3));
    }
}
