//! Records as lines in a file, of bounded size, never half a line.
//!
//! A process has one file, `NAME.jsonl`, and the one before it, `NAME.old.jsonl`; together they stay below
//! the size that the user gave. Lines are written in one piece, and what a full disk left of a piece is cut
//! off again, so that whoever reads sees whole lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name and version of the format.
pub const SCHEMA: &str = "dynamiccl-profile-1";

/// A process's files.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    old: PathBuf,
    header: String,
    file: Option<File>,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Bytes at which the file becomes the old one.
    part_max: u64,
}

impl Journal {
    /// Opens a process's file, or goes on with it, in a folder that is made where it is not there.
    pub fn open(folder: &Path, host: &str, max: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (pid, start) = (std::process::id(), process_start());
        let name = format!("dynamiccl-{host}-{pid}-{start}");
        let path = folder.join(format!("{name}.jsonl"));
        let header =
            format!("{{\"schema\":\"{SCHEMA}\",\"host\":\"{host}\",\"pid\":{pid},\"start\":{start}}}\n");
        let old = folder.join(format!("{name}.old.jsonl"));
        let mut journal = Journal { path, old, header, file: None, length: 0, part_max: max / 2 };
        journal.open_file()?;
        Ok(journal)
    }

    fn open_file(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        self.length = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    /// Where records go.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds whole lines, or none of them.
    pub fn write(&mut self, lines: &str) -> io::Result<()> {
        if self.length > 0 && self.length + lines.len() as u64 > self.part_max {
            match fs::rename(&self.path, &self.old) {
                // Somebody has moved it away, or its folder: what comes now goes into a new one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
                }
                renamed => renamed?,
            }
            self.file = None;
        }
        if self.file.is_none() {
            self.open_file()?;
        }
        let header = if self.length == 0 { self.header.as_str() } else { "" };
        let piece = [header, lines].concat();
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        if let Err(error) = file.write_all(piece.as_bytes()) {
            file.set_len(self.length)?;
            return Err(error);
        }
        self.length += piece.len() as u64;
        Ok(())
    }
}

/// This machine's name, as a part of a file's name.
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.trim().chars().filter(is_plain).take(64).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// When this process began, in the kernel's ticks: a number that a later process of the same id has not, and
/// that stays the same when NCCL loads this library again.
fn process_start() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dynamiccl-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn line(k: u64) -> String {
        format!("{{\"seq\":{k:08}}}\n")
    }

    #[test]
    fn a_header_then_lines_and_a_second_journal_goes_on() {
        let folder = Folder::new("goes-on");
        let mut first = Journal::open(&folder.0.join("made"), "n1", 1 << 20).unwrap();
        first.write(&line(1)).unwrap();
        first.write(&line(2)).unwrap();
        drop(first);
        let mut second = Journal::open(&folder.0.join("made"), "n1", 1 << 20).unwrap();
        second.write(&line(3)).unwrap();
        let text = fs::read_to_string(second.path()).unwrap();
        let (pid, start) = (std::process::id(), process_start());
        let header = format!(r#"{{"schema":"dynamiccl-profile-1","host":"n1","pid":{pid},"start":{start}}}"#);
        assert_eq!(text, format!("{header}\n{}{}{}", line(1), line(2), line(3)));
    }

    #[test]
    fn two_files_stay_below_the_size_and_hold_the_newest() {
        let folder = Folder::new("rotates");
        let max = 4096;
        let mut journal = Journal::open(&folder.0, "n1", max).unwrap();
        for k in 0..1000 {
            journal.write(&line(k)).unwrap();
            let sizes: u64 =
                fs::read_dir(&folder.0).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
            assert!(sizes <= max, "{sizes} bytes");
        }
        let old = fs::read_to_string(&journal.old).unwrap();
        let new = fs::read_to_string(&journal.path).unwrap();
        assert!(old.starts_with("{\"schema\"") && new.starts_with("{\"schema\""));
        let kept: Vec<String> =
            old.lines().chain(new.lines()).filter(|l| l.contains("seq")).map(|l| format!("{l}\n")).collect();
        let first = 1000 - kept.len() as u64;
        assert!(kept.len() > 100);
        assert_eq!(kept, (first..1000).map(line).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_was_moved_away_is_begun_anew() {
        let folder = Folder::new("moved");
        let mut journal = Journal::open(&folder.0, "n1", 4096).unwrap();
        for k in 0..1000 {
            if k == 100 {
                fs::remove_dir_all(&folder.0).unwrap();
            }
            journal.write(&line(k)).unwrap();
        }
        assert!(fs::read_to_string(&journal.path).unwrap().ends_with(&line(999)));
    }

    #[test]
    fn a_full_disk_is_an_error_each_time_and_nothing_worse() {
        let folder = Folder::new("full");
        let path = Journal::open(&folder.0, "n1", 1 << 20).unwrap().path;
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut journal = Journal::open(&folder.0, "n1", 1 << 20).unwrap();
        for k in 0..3 {
            assert!(journal.write(&line(k)).is_err());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error() {
        assert!(Journal::open(Path::new("/dev/null/x"), "n1", 1 << 20).is_err());
        assert!(Journal::open(Path::new("/proc/nowhere"), "n1", 1 << 20).is_err());
    }

    #[test]
    fn the_start_of_a_process_does_not_move() {
        assert_ne!(process_start(), 0);
        assert_eq!(process_start(), process_start());
        assert!(!host().is_empty());
    }
}
