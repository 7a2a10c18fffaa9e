//! Texts that a person writes: read whole, but for those that nobody can have written.
//!
//! A parser's tree takes many times the bytes of its text, so that a wrong path could take all memory of a machine.
//! Recordings and logs may be large and are read line by line elsewhere.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Most bytes of such a file.
pub const MOST: u64 = 16 << 20;

/// The text of a file of at most [`MOST`] bytes.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    read_up_to(MOST, path)
}

/// The same with another limit.
pub fn read_up_to(most: u64, path: impl AsRef<Path>) -> io::Result<String> {
    let file = File::open(path)?;
    // What is no plain file says nothing of its length: it is found out.
    let said = file.metadata()?.len();
    let mut bytes = Vec::new();
    if said <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    let length = said.max(bytes.len() as u64);
    if length > most {
        let why = format!("{length} bytes is more than the {} MiB that such a file may have", most >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_have_written_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        std::fs::write(&path, "nodes = 1\n").unwrap();
        assert_eq!(read(&path).unwrap(), "nodes = 1\n");
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(MOST).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, MOST);
        file.set_len(3 << 30).unwrap();
        let why = read(&path).unwrap_err().to_string();
        assert_eq!(why, "3221225472 bytes is more than the 16 MiB that such a file may have");
    }

    #[test]
    fn what_has_no_end_is_too_long_and_what_is_no_text_is_said() {
        assert_eq!(read_up_to(1 << 20, "/dev/zero").unwrap_err().kind(), ErrorKind::FileTooLarge);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        std::fs::write(&path, b"nodes = \xff").unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(read(dir.path().join("b.toml")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
