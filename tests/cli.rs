//! What every command shares: help, exit codes, usage errors.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

use crate::util::{Dir, assert_same};

const SIMULATE: &str = "simulate --cluster dgx_a100 --nodes 2 --collective allreduce";

/// Every command, and none.
const COMMANDS: &[&str] = &[
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
    "live sweep",
    "live eval",
    "bench",
];

#[test]
fn help_is_what_we_mean_to_say() {
    let dir = Dir::new();
    for command in COMMANDS {
        for (flag, length) in [("-h", "short"), ("--help", "long")] {
            let said = dir.run(&format!("{command} {flag}"));
            assert_eq!((said.code, said.stderr.as_str()), (0, ""));
            let name = if command.is_empty() { "dynamiccl".to_owned() } else { command.replace(' ', "_") };
            insta::assert_snapshot!(format!("help_{name}_{length}"), said.stdout);
        }
    }
}

#[test]
fn long_help_ends_with_the_exit_codes() {
    let dir = Dir::new();
    for command in COMMANDS {
        let help = dir.run(&format!("{command} --help")).stdout;
        let (_, codes) = help.split_once("EXIT CODES\n").expect("a section on exit codes");
        let codes: Vec<_> = codes.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(codes, ["0", "1", "2", "130"], "{command}");
    }
}

#[test]
fn help_fits_100_columns() {
    for command in COMMANDS {
        let help = Dir::new().run(&format!("{command} --help")).stdout;
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child =
        Command::new(cargo_bin!("dynamiccl")).arg("--help").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn version_is_one_line() {
    let said = Dir::new().run("--version");
    assert_same(&format!("dynamiccl {}\n", env!("CARGO_PKG_VERSION")), &said.stdout);
    assert_eq!(said.code, 0);
}

#[test]
fn no_command_shows_the_help_and_is_an_error() {
    let said = Dir::new().run("");
    assert_eq!(said.code, 2);
    assert_same("", &said.stdout);
    assert!(said.stderr.contains("Usage: dynamiccl [OPTIONS] <COMMAND>"), "{}", said.stderr);
}

#[test]
fn an_unknown_command_is_answered_with_the_nearest_one() {
    let said = Dir::new().run("simulat");
    said.assert_error("error: unrecognized subcommand 'simulat'");
    assert!(said.stderr.contains("tip: a similar subcommand exists: 'simulate'"), "{}", said.stderr);
}

#[test]
fn a_size_that_is_none_names_valid_ones() {
    Dir::new().run(&format!("{SIMULATE} --bytes 12Q")).assert_error(
        "error: invalid value '12Q' for '--bytes <B>': \
         \"12Q\" is not a size; write it like 1024, 64K, 1M or 4G",
    );
}

#[test]
fn an_unknown_collective_is_answered_with_the_nearest_one() {
    let said = Dir::new().run("simulate --cluster dgx_a100 --nodes 2 --collective allredcue --bytes 1M");
    said.assert_error(
        "error: invalid value 'allredcue' for '--collective <K>': unknown collective \"allredcue\"; \
         did you mean \"allreduce\"? \
         (known: broadcast, reduce, allgather, reducescatter, allreduce, alltoall, sendrecv, alltoallv)",
    );
}

#[test]
fn nothing_runs_on_no_nodes_and_no_bytes() {
    let dir = Dir::new();
    dir.run("simulate --cluster dgx_a100 --nodes 0 --collective allreduce --bytes 1M")
        .assert_error("error: invalid value '0' for '--nodes <N>': 0 is not in 1..=4294967295");
    dir.run(&format!("{SIMULATE} --bytes 0")).assert_error("error: --bytes 0: there is nothing to send");
}

#[test]
fn validate_wants_one_kind_of_measurement() {
    let dir = Dir::new();
    dir.run("validate").assert_error("error: the following required arguments were not provided:");
    dir.run("validate --sweeps a --tables b")
        .assert_error("error: the argument '--sweeps <DIR>' cannot be used with '--tables <DIR>'");
}

#[test]
fn files_that_are_missing_are_named() {
    let dir = Dir::new();
    let missing = "No such file or directory (os error 2)";
    dir.run("simulate --cluster mine.toml --nodes 2 --collective allreduce --bytes 1M")
        .assert_error(&format!("error: mine.toml: {missing}"));
    dir.run(&format!("{SIMULATE} --bytes 1M --constants fit.toml")).assert_error(&format!(
        "error: fit.toml: {missing}; give a constants file, or leave --constants out for the built-in one"
    ));
    dir.run("calibrate --log x.log --cluster dgx_a100 --out y.toml")
        .assert_error(&format!("error: x.log: cannot be read: \"{missing}\"; check the path"));
    assert!(dir.names().is_empty());
}

#[test]
fn an_unknown_cluster_is_answered_with_the_nearest_one() {
    let said = Dir::new().run("simulate --cluster dgx_a10 --nodes 2 --collective allreduce --bytes 1M");
    let line = "error: unknown cluster \"dgx_a10\"; did you mean \"dgx_a100\"? (known: ";
    assert!(said.stderr.starts_with(line), "{}", said.stderr);
    assert_eq!(said.code, 2);
}

#[test]
fn a_broken_cluster_file_is_told_on_one_line() {
    let dir = Dir::new();
    dir.write("mine.toml", "description = \"x\"\ngpus_per_node = [8]\n");
    let said = dir.run("simulate --cluster mine.toml --nodes 2 --collective allreduce --bytes 1M");
    assert!(said.stderr.starts_with("error: mine.toml: TOML parse error at line 2"), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    assert_eq!(said.code, 2);
}

#[test]
fn calibrate_refuses_a_bad_output_path_and_leaves_nothing_behind() {
    let dir = Dir::new();
    dir.write("node.log", "");
    let said = dir.run("calibrate --log node.log --cluster dgx_a100 --out no/such/mine.toml");
    assert!(said.stderr.starts_with("error: cannot write no/such/mine.toml: "), "{}", said.stderr);
    assert_eq!(said.code, 2);
    assert_eq!(dir.names(), ["node.log"]);
}

#[test]
fn quiet_and_verbose_exclude_each_other() {
    Dir::new()
        .run("bench -q -v")
        .assert_error("error: the argument '--quiet' cannot be used with '--verbose...'");
}

/// Runs `bench`, interrupts it after a while, and gives its exit code and last words.
fn interrupted_after(delay: Duration) -> (Option<i32>, String) {
    let mut bench = Command::new(cargo_bin!("dynamiccl"));
    let child = bench.arg("bench").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(delay);
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn ctrl_c_ends_long_work_with_its_own_code() {
    // Too early, the signal meets a program that is still being loaded; too late, one that is done.
    let delays = [100, 400, 1000, 1600].map(Duration::from_millis);
    let (code, words) =
        delays.into_iter().map(interrupted_after).find(|(code, _)| *code == Some(130)).unwrap();
    assert_eq!((code, words.lines().last()), (Some(130), Some("interrupted")));
}
