//! What every command shares: help, exit codes, usage errors.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

use crate::util::{COMMANDS, Dir, assert_same, repository_path};

const SIMULATE: &str = "simulate --cluster dgx_a100 --nodes 2 --collective allreduce";

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

/// What is missing in the list is held to nothing.
#[test]
fn the_list_of_commands_is_whole() {
    let dir = Dir::new();
    let below = |parent: &str| -> Vec<String> {
        let help = dir.run(&format!("{parent} -h")).stdout;
        let (_, listed) = help.split_once("Commands:\n").expect("a list of commands");
        // What a command does may take several lines, which are further in.
        let lines =
            listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
        let names =
            lines.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next());
        let whole = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent} {name}") };
        names.filter(|name| *name != "help").map(whole).collect()
    };
    let mut found = vec![String::new()];
    found.extend(["", "plugin", "live"].into_iter().flat_map(below));
    let mut known = COMMANDS.to_vec();
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
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
        .assert_error("error: invalid value '0' for '--nodes <N>': give a whole number from 1 up");
    dir.run(&format!("{SIMULATE} --bytes 0")).assert_error("error: --bytes 0: there is nothing to send");
}

/// What stands where a number is expected is answered by whoever expects it, a number below zero included.
#[test]
fn what_is_no_number_is_answered_with_what_would_do() {
    let whole = "give a whole number from";
    for (words, answer) in [
        ("bench --seed -1", format!("'-1' for '--seed <N|random>': {whole} 0 up, or \"random\"")),
        ("bench --seed x", format!("'x' for '--seed <N|random>': {whole} 0 up, or \"random\"")),
        ("export --out a.safetensors --among 1,x", format!("'x' for '--among <SEEDS>': {whole} 0 up")),
        (
            "export --out a.safetensors --margin 1e40",
            "'1e40' for '--margin <SPREADS>': give a finite number, like 0.5".into(),
        ),
        ("plugin doctor --ranks 0", format!("'0' for '--ranks <N>': {whole} 1 to 1048576")),
        (
            "eval --fail-below -1",
            "'-1' for '--fail-below <X>': a speed-up is a number above 0, like 1.02".into(),
        ),
    ] {
        Dir::new().run(words).assert_error(&format!("error: invalid value {answer}"));
    }
    Dir::new().run(&format!("{SIMULATE} --bytes -1")).assert_error(
        "error: invalid value '-1' for '--bytes <B>': \"-1\" is not a size; write it like 1024, 64K, 1M or 4G",
    );
    // Where a name is expected, it is still a flag that is none.
    Dir::new().run("inspect -1").assert_error("error: unexpected argument '-1' found");
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

/// Whatever is read or written already under that name, a command leaves it alone.
#[test]
fn no_file_is_written_over_one_that_the_command_reads_or_writes_too() {
    let dir = Dir::new();
    let call = "--cluster c.toml --nodes 1 --collective allreduce --bytes 1M";
    dir.write_policy("p.safetensors");
    for (file, name) in [
        ("env/tests/data/live-h200/loopback_4ranks.csv", "s.csv"),
        ("env/tests/data/traces/job.jsonl", "job.jsonl"),
        ("env/clusters/dgx_a100.toml", "c.toml"),
        ("env/clusters/dgx_a100.toml", "log.toml"),
        ("env/clusters/dgx_a100.toml", "sketch.toml"),
        ("policies/frozen/wan.safetensors", "w.safetensors"),
        ("policies/frozen/rails.safetensors", "r.safetensors"),
    ] {
        std::fs::copy(repository_path(file), dir.path(name)).unwrap();
    }
    assert_eq!(dir.run(&format!("synth {call} --sketch pair --sketch-out sketch.toml")).code, 0);
    symlink("s.csv", dir.path("link.csv")).unwrap();
    let contents =
        |dir: &Dir| dir.names().iter().map(|name| std::fs::read(dir.path(name)).unwrap()).collect::<Vec<_>>();
    let (names, before) = (dir.names(), contents(&dir));
    for (words, said) in [
        ("live train --sweep s.csv --out s.csv", "--out s.csv: --sweep"),
        ("live train --sweep s.csv --out link.csv", "--out link.csv: --sweep"),
        (
            "live train --policy p.safetensors --sweep s.csv --out p.safetensors",
            "--out p.safetensors: --policy",
        ),
        ("export --out job.jsonl --history job.jsonl", "--out job.jsonl: --history"),
        ("export --format nccl-csv --cluster c.toml --nodes 1 --out c.toml", "--out c.toml: --cluster"),
        ("calibrate --log log.toml --cluster dgx_a100 --out log.toml", "--out log.toml: --log"),
        (
            &format!("synth {call} --sketch-file sketch.toml --out sketch.toml"),
            "--out sketch.toml: --sketch-file",
        ),
        (&format!("synth {call} --out ./c.toml"), "--out ./c.toml: --cluster"),
        (&format!("synth {call} --out same.xml --picture same.xml"), "--picture same.xml: --out"),
        (&format!("synth {call} --out same.xml --sketch-out ./same.xml"), "--sketch-out ./same.xml: --out"),
        (&format!("tune --method random {call} --surface c.toml"), "--surface c.toml: --cluster"),
        (&format!("tune --method random {call} --out a.json --surface a.json"), "--surface a.json: --out"),
        (&format!("tune --joint {call} --out a.json --surface a.json"), "--surface a.json: --out"),
        (
            "eval --policy none --against nccl,p.safetensors --csv p.safetensors",
            "--csv p.safetensors: --against",
        ),
        ("eval --policy p.safetensors --against nccl --csv p.safetensors", "--csv p.safetensors: --policy"),
        ("eval --policy none --against nccl --clusters c.toml --html c.toml", "--html c.toml: --clusters"),
        ("wan --policy w.safetensors --html w.safetensors", "--html w.safetensors: --policy"),
        ("rails --policy r.safetensors --html r.safetensors", "--html r.safetensors: --policy"),
    ] {
        dir.run(words).assert_error(&format!("error: {said} names the same file; name another"));
        assert!(dir.names() == names && contents(&dir) == before, "{words}");
    }
    // A policy may be brought up to date.
    assert_eq!(dir.run("export --policy p.safetensors --out p.safetensors --margin 0.5").code, 0);
}

#[test]
fn devices_and_pipes_stay_what_they_are_and_links_lead_where_they_did() {
    let dir = Dir::new();
    let pipe = Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap();
    assert!(pipe.success());
    let wan = |html: &str| dir.run(&format!("wan --collectives 100 --html {html}"));
    wan("pipe").assert_error("error: pipe is no regular file; name a file");
    wan("/dev/null").assert_error("error: /dev/null is no regular file; name a file");
    wan("/dev/stdout")
        .assert_error("error: /dev/stdout is no regular file; leave it out, results are printed");
    dir.write("real.html", "old");
    symlink("real.html", dir.path("link.html")).unwrap();
    assert_eq!(wan("link.html").code, 0);
    assert!(dir.path("link.html").is_symlink());
    assert!(std::fs::read_to_string(dir.path("real.html")).unwrap().starts_with("<!"));
    assert_eq!(dir.names(), ["link.html", "pipe", "real.html"]);
}

/// Runs the program where no file may grow beyond a few blocks, which is like a full disk.
fn without_room(dir: &Dir, words: &str) -> (Option<i32>, String, String) {
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited]).arg(cargo_bin!("dynamiccl")).args(words.split_whitespace());
    let output = shell.current_dir(dir.path("")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_was_worked_out_is_told_even_where_a_file_cannot_be_written() {
    let dir = Dir::new();
    for words in [
        "eval --policy none --against nccl --clusters dgx_a100 --nodes 2 --worlds 1 --seeds 1 --csv a.csv",
        "rails --iterations 1 --policy none --html a.html",
        "wan --collectives 100 --html a.html",
        "wan --collectives 20 --grid --html a.html",
    ] {
        let (code, stdout, stderr) = without_room(&dir, &format!("{words} --progress never"));
        assert_eq!(code, Some(2), "{words}: {stderr}");
        assert!(stdout.lines().count() > 5, "{words}: {stdout}");
        assert!(stderr.starts_with("error: cannot write a."), "{words}: {stderr}");
        assert!(dir.names().is_empty(), "{:?}", dir.names());
    }
}

/// A parser would take many times its length of memory.
#[test]
fn a_file_that_nobody_can_have_written_is_not_read() {
    let dir = Dir::new();
    let file = std::fs::File::create(dir.path("big.toml")).unwrap();
    file.set_len(3 << 30).unwrap();
    let synth = "synth --cluster dgx_h100 --nodes 2 --collective allgather --bytes 1M";
    for (words, most) in [
        ("simulate --cluster big.toml --nodes 2 --collective allreduce --bytes 1M", 16),
        (&*format!("{SIMULATE} --bytes 1M --constants big.toml"), 16),
        ("train --curriculum big.toml", 16),
        ("train --curriculum smoke --config big.toml", 16),
        (&*format!("{synth} --sketch-file big.toml"), 16),
        (&*format!("{synth} --sysfs big.toml"), 16),
        ("synth --verify big.toml", 256),
    ] {
        let why = format!("big.toml: 3221225472 bytes is more than the {most} MiB that such a file may have");
        dir.run(words).assert_error_with(&why);
    }
}
