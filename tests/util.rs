//! A folder of its own for each test, the program ready to run in it, and a list of its commands.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use dynamiccl_policies::frozen::{About, Frozen, Training};
use dynamiccl_policies::network::{Shape, Weights};
use dynamiccl_policies::probe;
use dynamiccl_spec::Overrides;
use serde_json::Value;
use tempfile::TempDir;

/// Every command, and none.
pub const COMMANDS: [&str; 23] = [
    "",
    "simulate",
    "validate",
    "calibrate",
    "tune",
    "synth",
    "decide",
    "check-env",
    "train",
    "eval",
    "inspect",
    "export",
    "wan",
    "plugin",
    "plugin path",
    "plugin install",
    "plugin doctor",
    "rails",
    "live",
    "live sweep",
    "live eval",
    "live train",
    "bench",
];

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

    /// Where a file of the folder is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("write a test file");
    }

    /// Writes the file of a small policy in the folder, and gives the policy.
    pub fn write_policy(&self, name: &str) -> Frozen {
        let shape = Shape { embedding: 8, memory: 8, expert: 8, resource: 8 };
        let training = Training { seeds: vec![7], version: "0.1.0".to_owned(), ..Training::default() };
        let results = vec![("speedup.tier1".to_owned(), 1.25)];
        let (called, nccl) = ("tiny".to_owned(), vec!["2.30".to_owned()]);
        let about = About { name: called, nccl, margin: 1.0, training, results, ..About::default() };
        let mut weights = Weights::untrained(shape);
        // A bias of the gates, so that a recording leaves something in memory.
        weights.get_mut("lstm.bias").expect("a tensor of the network").fill(0.5);
        let frozen = Frozen { weights, about };
        fs::write(self.path(name), frozen.to_bytes()).expect("write a test file");
        frozen
    }

    /// Writes the file of a policy whose weights are drawn at random: every head varies, nothing is good.
    pub fn write_wild_policy(&self, name: &str) -> Frozen {
        let about = About { name: "wild".to_owned(), margin: 0.3, ..About::default() };
        let frozen = Frozen { weights: probe::weights(Shape::default(), 1), about };
        fs::write(self.path(name), frozen.to_bytes()).expect("write a test file");
        frozen
    }

    /// Writes what the plugin's profiler would write about a job of eight ranks on one node: a folder with a file of
    /// each rank.
    pub fn write_records(&self, folder: &str, calls: u32) {
        fs::create_dir(self.path(folder)).expect("make a test folder");
        for rank in 0..8 {
            let mut lines =
                format!("{{\"schema\":\"dynamiccl-profile-1\",\"host\":\"n1\",\"pid\":{}}}\n", 100 + rank);
            for seq in 0..calls {
                let (bytes, us) = (1 << (10 + 4 * (seq % 4)), 50 + rank);
                lines += &format!(
                    "{{\"comm\":\"0xa1\",\"rank\":{rank},\"ranks\":8,\"nodes\":1,\"seq\":{seq},\"coll\":\"allreduce\",\"bytes\":{bytes},\
                     \"algo\":\"ring\",\"proto\":\"simple\",\"nchannels\":8,\"warps\":16,\"t_us\":{},\"us\":{us}.5,\"clock\":\"gpu\"}}\n",
                    1_794_751_652_000_000_u64 + u64::from(seq) * 1000,
                );
            }
            self.write(&format!("{folder}/dynamiccl-n1-{}-1.jsonl", 100 + rank), &lines);
        }
    }

    /// Gives a file or folder of the repository a name in the folder.
    pub fn borrow(&self, path: &str, name: &str) {
        symlink(repository_path(path), self.path(name)).expect("link a test file");
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
        self.run_with(words, &[])
    }

    /// The same with variables in its environment.
    pub fn run_with(&self, words: &str, variables: &[(&str, &str)]) -> Said {
        let mut command = Command::new(cargo_bin!("dynamiccl"));
        // Variables of the shell that runs the tests would be talked about.
        for name in Overrides::VARIABLES {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
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

    /// Runs the program with these words and presses Ctrl-C once the work is under way: it must end soon, with its own
    /// code. Gives all of stderr.
    #[track_caller]
    pub fn interrupt(&self, words: &str) -> String {
        // Too early, the signal meets a program that is still being loaded.
        for delay in [500, 2000, 4000] {
            let mut command = std::process::Command::new(cargo_bin!("dynamiccl"));
            command.current_dir(self.0.path()).args(words.split_whitespace());
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
            let child = child.expect("run dynamiccl");
            thread::sleep(Duration::from_millis(delay));
            let asked = Instant::now();
            let mut kill = std::process::Command::new("kill");
            kill.args(["-INT", &child.id().to_string()]).status().expect("send a signal");
            let output = child.wait_with_output().expect("wait for dynamiccl");
            let stderr = String::from_utf8(output.stderr).expect("stderr is text");
            if let Some(code) = output.status.code() {
                assert_eq!((code, stderr.lines().last()), (130, Some("interrupted")), "{stderr}");
                assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
                return stderr;
            }
        }
        panic!("{words}: Ctrl-C was never caught");
    }
}

impl Said {
    /// The JSON document on stdout; fails unless the run ended well and said nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        assert_eq!(self.stdout.lines().count(), 1, "one document on one line");
        let document: Value = serde_json::from_str(&self.stdout).expect("stdout is JSON");
        assert_eq!(document["schema"], 1);
        document
    }

    /// The shape of what a run that ended well has said.
    #[track_caller]
    pub fn shape(&self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        shape(&self.stdout)
    }

    /// Fails unless this was an error whose last line on stderr has this part: exit code 2, nothing on stdout.
    #[track_caller]
    pub fn assert_error_with(&self, part: &str) {
        let last = self.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(part), "{last}\nlacks: {part}");
        assert_same("", &self.stdout);
        assert_eq!(self.code, 2);
    }

    /// Fails unless this was an error: exit code 2, this first line on stderr, nothing on stdout.
    #[track_caller]
    pub fn assert_error(&self, line: &str) {
        assert_same(line, self.stderr.lines().next().unwrap_or_default());
        assert_same("", &self.stdout);
        assert_eq!(self.code, 2);
    }
}

/// A text without what a refitted constant may change: numbers are N, settings ALGO and PROTO, columns
/// one space apart, and of rows that look alike there is one, in alphabetic order.
pub fn shape(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split_whitespace().map(shape_of_word).collect::<Vec<_>>().join(" ");
        if text_line(&line) {
            rows.sort();
            rows.dedup();
            lines.append(&mut rows);
            lines.push(line);
        } else {
            rows.push(line);
        }
    }
    rows.sort();
    rows.dedup();
    lines.append(&mut rows);
    lines.join("\n") + "\n"
}

/// Whether a line is a comment or a part of the verdict, and not a row of a table.
fn text_line(line: &str) -> bool {
    line.starts_with('#')
        || line.starts_with("Summary")
        || line.contains("faster")
        || line.contains("as fast")
}

fn shape_of_word(word: &str) -> String {
    let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
    let kind = match plain {
        _ if plain.parse::<f64>().is_ok() => "N",
        "tree" | "ring" | "collnet_direct" | "collnet_chain" | "nvls" | "nvls_tree" | "pat" => "ALGO",
        "ll" | "ll128" | "simple" => "PROTO",
        _ => match plain.split_once('/') {
            Some((algo, proto)) if shape_of_word(algo) == "ALGO" && shape_of_word(proto) == "PROTO" => {
                "ALGO/PROTO"
            }
            _ => return word.to_owned(),
        },
    };
    word.replace(plain, kind)
}

/// Whether two numbers agree to about six digits, which is what NCCL's tables are printed with.
pub fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-5 * a.abs().max(b.abs())
}

/// The number at a place of a document.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// The names of an object's fields, sorted.
#[track_caller]
pub fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The path of a file or folder of the repository.
pub fn repository_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A file of the repository.
pub fn repository(path: &str) -> String {
    let path = repository_path(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares two texts, and shows both between rulers where they differ.
#[track_caller]
pub fn assert_same(expected: &str, got: &str) {
    let ruler = "~".repeat(79);
    assert!(expected == got, "\nexpected:\n{ruler}\n{expected}\n{ruler}\ngot:\n{ruler}\n{got}\n{ruler}\n");
}
