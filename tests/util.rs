//! A folder of its own for each test, and the program ready to run in it.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

/// A temporary folder in which the program runs.
pub struct Dir(TempDir);

/// What one run of the program said.
pub struct Said {
    /// Exit code.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl Dir {
    /// An empty folder.
    pub fn new() -> Self {
        Dir(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("write a test file");
    }

    /// Names of all files in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("list the test folder");
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program with these words, split at spaces, without a terminal.
    pub fn run(&self, words: &str) -> Said {
        let mut command = Command::new(cargo_bin!("dynamiccl"));
        // Help is as wide as the terminal, or as COLUMNS says: here it must have neither.
        command.env_remove("COLUMNS").write_stdin("");
        command.current_dir(self.0.path()).args(words.split_whitespace());
        let output = command.output().expect("run dynamiccl");
        Said {
            code: output.status.code().expect("an exit code, not a signal"),
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        }
    }
}

impl Said {
    /// Fails unless this was an error: exit code 2, this first line on stderr, nothing on stdout.
    #[track_caller]
    pub fn assert_error(&self, line: &str) {
        assert_same(line, self.stderr.lines().next().unwrap_or_default());
        assert_same("", &self.stdout);
        assert_eq!(self.code, 2);
    }
}

/// A file of the repository.
pub fn repository(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares two texts, and shows both between rulers where they differ.
#[track_caller]
pub fn assert_same(expected: &str, got: &str) {
    let ruler = "~".repeat(79);
    assert!(expected == got, "\nexpected:\n{ruler}\n{expected}\n{ruler}\ngot:\n{ruler}\n{got}\n{ruler}\n");
}
