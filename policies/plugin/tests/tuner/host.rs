//! The C host: how it is compiled, and what it is run with.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::network::Shape;
use dynamiccl_policies::probe;

/// A way of compiling it.
pub struct Flavour {
    name: &'static str,
    flags: &'static [&'static str],
    built: OnceLock<PathBuf>,
}

/// As a user would.
pub static PLAIN: Flavour = Flavour { name: "plain", flags: &["-O2"], built: OnceLock::new() };
/// With AddressSanitizer, which sees the library's allocations too.
pub static ASAN: Flavour =
    Flavour { name: "asan", flags: &["-O1", "-g", "-fsanitize=address"], built: OnceLock::new() };
/// For valgrind, which counts allocations by itself.
pub static VALGRIND: Flavour =
    Flavour { name: "valgrind", flags: &["-O1", "-g", "-DUNCOUNTED"], built: OnceLock::new() };

/// What came of a run.
pub struct Run {
    /// Whether it ended well.
    pub succeeded: bool,
    /// What it said on both streams.
    pub said: String,
}

/// Files of these tests.
pub fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plugin-tuner-{name}"))
}

/// The library that NCCL would open.
pub fn library() -> PathBuf {
    let beside = std::env::current_exe().expect("a test has a path");
    beside.with_file_name("libnccl_tuner_dynamiccl.so")
}

/// A policy whose decisions are all over the place.
pub fn wild_policy() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let mut frozen = Frozen::shipped().expect("the shipped policy is for this build");
        frozen.weights = probe::weights(Shape::default(), 3);
        (frozen.about.name, frozen.about.margin) = ("wild".to_owned(), 0.3);
        let path = scratch("wild.safetensors");
        std::fs::write(&path, frozen.to_bytes()).expect("a file can be written");
        path
    })
}

impl Flavour {
    /// The compiled host.
    pub fn path(&self) -> &Path {
        self.built.get_or_init(|| {
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host");
            let files = std::fs::read_dir(sources).expect("the host's sources");
            let files = files.map(|file| file.expect("a file").path());
            let path = scratch(&format!("host-{}", self.name));
            let mut compile = Command::new("cc");
            compile.args(self.flags).args([
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pthread",
                "-rdynamic",
                "-o",
            ]);
            compile.arg(&path).args(files.filter(|file| file.extension().is_some_and(|end| end == "c")));
            let output = compile.args(["-ldl", "-lm"]).output().expect("cc is there");
            assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
            path
        })
    }
}

/// Runs a command on the library with these variables, and with none of NCCL's or ours besides.
pub fn command(program: &Path, before: &[&str], arguments: &[&str], set: &[(&str, &str)]) -> Command {
    let mut command = match before {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("NCCL_") || name.starts_with("DYNAMICCL_"))
    {
        command.env_remove(name);
    }
    command.env("DYNAMICCL_POLICY", wild_policy());
    command.arg(library()).args(arguments).envs(set.iter().copied());
    command
}

/// Runs the host.
pub fn run(flavour: &Flavour, arguments: &[&str], set: &[(&str, &str)]) -> Run {
    finished(command(flavour.path(), &[], arguments, set))
}

/// Runs a command to its end.
pub fn finished(mut command: Command) -> Run {
    let output = command.output().expect("it can be run");
    let said = [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned());
    Run { succeeded: output.status.success(), said: said.concat() }
}
