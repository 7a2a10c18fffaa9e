//! The end of a worker's log, on one line.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes at the end that are looked at.
const END: u64 = 2048;
/// Lines that are shown.
const LINES: usize = 4;

/// The last lines of a file; nothing where there is none.
pub fn tail(file: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut bytes = Vec::new();
        file.take(END).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_on_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        assert_eq!(tail(&file), "");
        let text: String = (0..1000).map(|n| format!("line {n}\n\n")).collect();
        std::fs::write(&file, text).unwrap();
        assert_eq!(tail(&file), "line 996 | line 997 | line 998 | line 999");
    }
}
