//! Compiling and running the host.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// A folder of this test's own, gone when the test is.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profiler-{name}"));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Names of its files, in order.
    pub fn names(&self) -> Vec<String> {
        let listed = fs::read_dir(&self.0).map(|listed| listed.map(|f| f.unwrap().file_name()));
        let mut names: Vec<String> =
            listed.map(|names| names.map(|name| name.into_string().unwrap()).collect()).unwrap_or_default();
        names.sort();
        names
    }

    /// All lines of its records; every one must be whole.
    pub fn lines(&self) -> Vec<Value> {
        let names = self.names();
        let files = names.iter().filter(|name| name.ends_with(".jsonl"));
        files.flat_map(|name| whole_lines(&self.0.join(name))).collect()
    }

    /// Lines that are calls.
    pub fn calls(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line.get("seq").is_some()).collect()
    }

    /// Collectives that the files say were dropped.
    pub fn dropped(&self) -> u64 {
        self.lines().iter().filter_map(|line| line.get("dropped")?.as_u64()).sum()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The objects of a file, which ends with a line and begins with a header.
pub fn whole_lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{}: half a line", file.display());
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.first().is_none_or(|line| line["schema"] == "dynamiccl-profile-1"), "{lines:?}");
    lines
}

/// The library, beside the test that cargo has made it for.
fn library() -> PathBuf {
    let file = std::env::current_exe().unwrap().with_file_name("libnccl_tuner_dynamiccl.so");
    assert!(file.is_file(), "{} is not there", file.display());
    file
}

/// The host, plain or with the address sanitizer, compiled once.
fn compiled(sanitized: bool) -> &'static Path {
    static PLAIN: OnceLock<PathBuf> = OnceLock::new();
    static SANITIZED: OnceLock<PathBuf> = OnceLock::new();
    let (once, name, flags) = match sanitized {
        false => (&PLAIN, "host", &[][..]),
        true => (&SANITIZED, "host-asan", &["-fsanitize=address", "-fno-omit-frame-pointer"][..]),
    };
    once.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profiler-{name}"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/profiler/host.c");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(flags);
        cc.arg("-o").arg(&program).arg(source).args(["-ldl", "-lpthread"]);
        assert!(cc.status().expect("cc is there").success(), "{cc:?}");
        program
    })
}

/// Runs a scenario and gives what it said.
pub fn run<V: AsRef<OsStr>>(scenario: &str, version: u32, variables: &[(&str, V)]) -> String {
    finish(compiled(false), scenario, version, variables)
}

/// The same, watched by the address sanitizer, which also looks for what was never freed.
pub fn run_sanitized<V: AsRef<OsStr>>(scenario: &str, version: u32, variables: &[(&str, V)]) -> String {
    finish(compiled(true), scenario, version, variables)
}

fn finish<V: AsRef<OsStr>>(program: &Path, scenario: &str, version: u32, variables: &[(&str, V)]) -> String {
    let mut host = Command::new(program);
    host.arg(library()).arg(scenario).arg(version.to_string());
    // Nothing of the user's own may reach it.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["DYNAMICCL_", "NCCL_", "SLURM_", "OMPI_"].iter().any(|prefix| name.starts_with(prefix)) {
            host.env_remove(&*name);
        }
    }
    host.env_remove("LOCAL_RANK").envs(variables.iter().map(|(name, value)| (name, value)));
    let output = host.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario} v{version}: {}\n{said}{errors}", output.status);
    said + &errors
}
