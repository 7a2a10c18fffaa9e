//! A process beside the coordinator that takes away what it has made, should it end without doing so itself: killed,
//! or left by a second Ctrl-C.
//!
//! It is told of everything before it is made, over a pipe. Where the pipe closes without a good-bye, the coordinator
//! is gone. Workers need no guard: the kernel ends them with who started them.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ward::Ward;

/// How long a guard that was told that all is over may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a guard is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// This is about to be made.
    Keep(Ward),
    /// All of it is gone.
    Over,
}

/// The guard, as the coordinator sees it.
#[derive(Debug)]
pub struct Guard {
    process: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts one: a command that calls [`watch`].
    pub fn start(mut command: Command) -> io::Result<Self> {
        // In a group of its own, for Ctrl-C is not for it; and it holds no pipe open that somebody reads to its end.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut process = command.spawn()?;
        let pipe = process.stdin.take();
        Ok(Guard { process, pipe })
    }

    /// Tells it what is about to be made.
    pub fn keep(&mut self, ward: &Ward) -> io::Result<()> {
        self.tell(&Word::Keep(ward.clone()))
    }

    fn tell(&mut self, word: &Word) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(&line))
    }

    /// Lets it go: everything is gone.
    pub fn dismiss(&mut self) {
        // One that is gone already needs no good-bye.
        let _ = self.tell(&Word::Over);
        self.pipe = None;
        let until = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Is a guard: listens until all is over, or takes away what is left, the last first.
pub fn watch(told: impl BufRead) {
    let mut wards = Vec::new();
    for line in told.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Word::Keep(ward)) => wards.push(ward),
            Ok(Word::Over) => return,
            // Half a word is the coordinator's last.
            Err(_) => break,
        }
    }
    wards.iter().rev().for_each(Ward::clear);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_taken_away_unless_all_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        let keep = serde_json::to_string(&Word::Keep(Ward::Folder(folder.clone()))).unwrap();
        for (rest, left) in [("\"over\"\n", true), ("\"ov", false), ("", false)] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("rank0.log"), "words").unwrap();
            watch(format!("{keep}\n{rest}").as_bytes());
            assert_eq!(folder.exists(), left, "{rest}");
        }
    }
}
