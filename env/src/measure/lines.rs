//! Lines of a log, in bounded memory and free of what launchers put around them.
//!
//! mpirun, srun and container runtimes prefix each line, and mpirun may even put its tag in the
//! middle of one, wherever the test flushed. None of that belongs to the log.

use std::io::{self, BufRead};

/// Bytes of one line that are kept; nccl-tests' own lines are below 250.
const LINE_CAP: usize = 16 << 10;

/// Reads lines, keeping at most [`LINE_CAP`] bytes of each.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Lines of `input`.
    pub(super) fn new(input: R) -> Self {
        Lines { input, buffer: Vec::new(), number: 0 }
    }

    /// The next line and its number, without its end and without a launcher's prefix.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        self.buffer.clear();
        if !self.fill()? {
            return Ok(None);
        }
        self.number += 1;
        let text = String::from_utf8_lossy(&self.buffer);
        Ok(Some((self.number, without_tags(text.trim_end_matches(['\r', '\n'])))))
    }

    /// Takes bytes up to the end of the line; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            let chunk = match self.input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if chunk.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = chunk.iter().position(|&b| b == b'\n');
            let take = end.map_or(chunk.len(), |at| at + 1);
            let room = LINE_CAP.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&chunk[..take.min(room)]);
            self.input.consume(take);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// The line without mpirun's `[1,0]<stdout>:`, srun's `0: `, hydra's `[0] `, torchrun's `[default0]:`
/// and ISO time stamps.
fn without_tags(line: &str) -> String {
    let mut line = line.to_owned();
    while let Some(end) = line.find("<stdout>:").or_else(|| line.find("<stderr>:")) {
        let bracketed = line[..end].ends_with(']');
        let start = if bracketed { line[..end].rfind('[').unwrap_or(0) } else { 0 };
        line.replace_range(start..end + "<stdout>:".len(), " ");
    }
    let mut rest = line.trim_start();
    while let Some(stripped) = without_prefix(rest) {
        rest = stripped;
    }
    rest.to_owned()
}

/// The line after one prefix, if it has one.
fn without_prefix(line: &str) -> Option<&str> {
    if let Some((label, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let plain = !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let tagged = rest.strip_prefix(':').filter(|_| plain);
        let ranked = rest.strip_prefix(' ').filter(|_| is_number(label));
        return tagged.or(ranked).map(str::trim_start);
    }
    let (first, rest) = line.split_once(' ')?;
    let srun = first.strip_suffix(':').is_some_and(is_number);
    let bytes = first.as_bytes();
    let stamp = bytes.len() >= 19 && bytes[10] == b'T' && bytes[..4].iter().all(u8::is_ascii_digit);
    (srun || stamp).then(|| rest.trim_start())
}

fn is_number(s: &str) -> bool {
    !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut lines = Lines::new(text.as_bytes());
        std::iter::from_fn(|| lines.next().expect("memory").map(|(_, line)| line)).collect()
    }

    #[test]
    fn launchers_leave_no_trace() {
        let plain = "#  Rank  0 Group  0 Pid 7 on n0 device  0 [0x07] NVIDIA A100";
        for prefix in [
            "[1,0]<stdout>:",
            "[1,12]<stdout>: ",
            "0: ",
            " 3: ",
            "[0] ",
            "[default0]:",
            "2026-01-01T10:00:00.123Z ",
            "",
        ] {
            assert_eq!(all(&format!("{prefix}{plain}\r\n")), [plain], "{prefix}");
        }
        assert_eq!(all("[1,0]<stdout>:  8 2 float[1,0]<stdout>:  1.5"), ["8 2 float   1.5"]);
    }

    #[test]
    fn a_line_never_takes_more_memory_than_its_cap() {
        let text = format!("{}\nshort", "x".repeat(10 * LINE_CAP));
        let lines = all(&text);
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [LINE_CAP, 5]);
    }

    #[test]
    fn bytes_that_are_no_text_are_lines_too() {
        let mut lines = Lines::new(&[0xff, 0xfe, 0, b'\n', 0xc3][..]);
        assert!(lines.next().expect("memory").is_some());
        assert!(lines.next().expect("memory").is_some());
        assert!(lines.next().expect("memory").is_none());
    }
}
