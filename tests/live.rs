//! `live`, on a driver and an NCCL that are not there: the libraries in tests/data/live, compiled here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use dynamiccl_env::measure::sweep::{self, Setting, Sure, Sweep};
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

use crate::plugin::{library, program};
use crate::util::{Dir, Said, repository_path};

mod commands;

/// A control program of MPS that starts a daemon which does nothing.
const MPS: &str = r#"#!/bin/sh
pid=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
case "$1" in
    -d) setsid "$(dirname "$0")/nvidia-cuda-mps-fake" 600 >/dev/null 2>&1 </dev/null & echo $! >"$pid" ;;
    *) read word; sleep ${FAKE_MPS_SLOW:-0}; test "$word" = quit && kill "$(cat "$pid")" ;;
esac
"#;

/// The folder of the libraries and of MPS.
fn fakes() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
        fs::create_dir_all(&folder).unwrap();
        let compile = |name: &str, source: &str, more: &[&Path]| {
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
            cc.arg("-I").arg(repository_path("policies/plugin/tests/host"));
            cc.arg(format!("-Wl,-soname,{name}")).arg("-o").arg(folder.join(name));
            cc.arg(repository_path(&format!("tests/data/live/{source}"))).args(more).args(["-ldl", "-lm"]);
            let output = cc.output().expect("cc is there");
            assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
        };
        compile("libcuda.so.1", "fake_cuda.c", &[]);
        compile("libnccl.so.2", "fake_nccl.c", &[&folder.join("libcuda.so.1")]);
        let _ = fs::remove_file(folder.join("nvidia-cuda-mps-fake"));
        let sleep = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|sleep| Path::new(sleep).is_file());
        fs::copy(sleep.expect("a program that sleeps"), folder.join("nvidia-cuda-mps-fake")).unwrap();
        let mps = folder.join("nvidia-cuda-mps-control");
        fs::write(&mps, MPS).unwrap();
        fs::set_permissions(&mps, fs::Permissions::from_mode(0o755)).unwrap();
        folder
    })
}

/// A run of `live` in a folder of its own.
struct Run {
    dir: Dir,
    set: Vec<(String, String)>,
}

impl Run {
    fn new(set: &[(&str, &str)]) -> Self {
        let folder = fakes().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let dir = Dir::new();
        // Whatever a run starts inherits this.
        let mark = dir.path("").display().to_string();
        fs::create_dir(dir.path("tmp")).unwrap();
        let ours = [
            ("LD_LIBRARY_PATH", folder.clone()),
            ("PATH", format!("{folder}:{path}")),
            ("TMPDIR", dir.path("tmp").display().to_string()),
            ("RUN_MARK", mark),
        ];
        let own = set.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Run { dir, set: ours.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// Neither a rank nor MPS nor a guard.
    fn assert_nothing_is_left(&self) {
        assert_eq!(self.left(), Vec::<u32>::new());
        assert_eq!(self.folders(), Vec::<PathBuf>::new());
    }

    /// Processes of the run.
    fn left(&self) -> Vec<u32> {
        with_variable(&format!("RUN_MARK={}", self.dir.path("").display()))
    }

    /// Folders that the run has made for itself.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path("tmp")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// The same, soon: a guard needs a moment.
    fn assert_nothing_is_left_soon(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !(self.left().is_empty() && self.folders().is_empty()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        self.assert_nothing_is_left();
    }

    fn variables(&self) -> Vec<(&str, &str)> {
        self.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn words(words: &str) -> String {
        format!("live {words} --library {}", library().display())
    }

    fn run(&self, words: &str) -> Said {
        self.dir.run_with(&Run::words(words), &self.variables())
    }

    fn start(&self, words: &str) -> Child {
        let mut command = program(&self.dir, &Run::words(words), &self.variables());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn sweep(&self, file: &str) -> Sweep {
        let mut sweeps = sweep::read(&self.dir.path(file)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sweeps.len(), 1);
        sweeps.remove(0)
    }
}

const SHORT: &str = "sweep --ranks 2 --share-gpu --out s.csv --rounds 3 --most-rounds 3";

fn is_best(setting: Setting) -> bool {
    let pair = Pair::new(Algorithm::Ring, Protocol::Simple);
    setting == Setting::Knobs { pair, channels: Some(4) }
}

#[test]
fn a_sweep_finds_what_is_best() {
    let run = Run::new(&[]);
    let document = run.run(&format!("{SHORT} --sizes 1K,64K --json")).json();
    let sweep = run.sweep("s.csv");
    assert_eq!(sweep.ranks, 2);
    // Of allreduce 4 pairs, of the others 2, with 5 channels each, and NCCL's own.
    assert_eq!(sweep.rows.len(), 2 * (21 + 4 * 11));
    assert_eq!(document["rows"], sweep.rows.len());
    for collective in Collective::TUNED {
        for bytes in [1024, 65_536] {
            let rows = sweep.rows.iter().filter(|row| row.collective == collective && row.bytes == bytes);
            let rows: Vec<_> = rows.collect();
            assert_eq!(rows[0].setting, Setting::Default, "NCCL's own comes first");
            let best = rows.iter().min_by(|a, b| a.median_us.total_cmp(&b.median_us)).unwrap();
            assert!(is_best(best.setting), "{collective} {bytes}: {best:?}");
            let gain = rows[0].median_us / best.median_us;
            assert!((1.9..2.1).contains(&gain), "{collective} {bytes}: {gain}");
            assert!(rows[1..].iter().all(|row| row.nccl_model_us.is_some()));
            assert!(rows.iter().all(|row| {
                let Sure { rounds, low_us, high_us } = row.sure.expect("how sure it is");
                rounds > 0 && row.min_us <= low_us && low_us <= high_us && high_us <= row.max_us
            }));
        }
    }
    run.assert_nothing_is_left();
    assert_eq!(document["cells"][0]["best"], "ring/simple 4ch");
    assert_eq!(document["conditions"]["nccl"], "2.28.3");
    let header = fs::read_to_string(run.dir.path("s.csv")).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(
        header,
        "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us,rounds,low_us,\
         high_us"
    );
}

#[test]
fn a_sweep_goes_on_where_it_was() {
    let run = Run::new(&[]);
    let one = format!("{SHORT} --collectives allreduce --json");
    run.run(&format!("{one} --sizes 1K")).json();
    let before = fs::read_to_string(run.dir.path("s.csv")).unwrap();
    let document = run.run(&format!("{one} --sizes 1K,4K")).json();
    assert_eq!(document["cells"].as_array().unwrap().len(), 1, "only what was not there");
    let after = fs::read_to_string(run.dir.path("s.csv")).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    // Times of other conditions are not mixed in.
    run.run(&format!("{one} --sizes 1K,16K --threads 128")).assert_error_with("other conditions");
    assert_eq!(fs::read_to_string(run.dir.path("s.csv")).unwrap(), after);
}

/// The first rounds of every cell are fewer than it is to have in the end, and an end may come before.
#[test]
fn a_sweep_goes_on_with_what_is_not_there_first() {
    let run = Run::new(&[]);
    let one = "sweep --ranks 2 --share-gpu --out s.csv --collectives allreduce --json";
    let cells = |document: serde_json::Value| -> Vec<(u64, u64)> {
        let cell =
            |cell: &serde_json::Value| (cell["bytes"].as_u64().unwrap(), cell["rounds"].as_u64().unwrap());
        document["cells"].as_array().unwrap().iter().map(cell).collect()
    };
    let document = run.run(&format!("{one} --sizes 1K --budget 0")).json();
    assert_eq!(cells(document), [(1024, 2)]);
    let before = fs::read_to_string(run.dir.path("s.csv")).unwrap();
    let document = run.run(&format!("{one} --sizes 1K --budget 0")).json();
    assert_eq!((&document["drift"], &document["again"]["unsure"]), (&serde_json::Value::Null, &1.into()));
    assert_eq!(cells(document), [], "it is there, and there is no time to measure it again");
    let document = run.run(&format!("{one} --sizes 1K,4K --budget 0")).json();
    assert_eq!(document["again"]["unsure"], 2);
    assert_eq!(cells(document), [(4096, 2)], "only what was not there");
    assert!(fs::read_to_string(run.dir.path("s.csv")).unwrap().starts_with(&before));
    let document = run.run(&format!("{one} --sizes 1K,4K,16K --bound 100")).json();
    assert_eq!(cells(document), [(16_384, 6), (1024, 6), (4096, 6)], "it first, and then what is unsure");
    let rounds: Vec<u32> = run.sweep("s.csv").rows.iter().filter_map(|row| Some(row.sure?.rounds)).collect();
    assert_eq!((rounds.len(), rounds[0], rounds[21], rounds[42]), (63, 6, 6, 6));
    assert_eq!(cells(run.run(&format!("{one} --sizes 1K,4K,16K")).json()), []);
}

/// Of whatever changes times, or what is tried, the file beside a sweep knows.
#[test]
fn a_sweep_does_not_go_on_under_other_conditions() {
    let run = Run::new(&[]);
    let one = format!("{SHORT} --collectives allreduce --sizes 1K --env NCCL_BUFFSIZE=1048576 --json");
    let document = run.run(&format!("{one} --channels 2,1")).json();
    let conditions = &document["conditions"];
    let told = serde_json::json!({"NCCL_BUFFSIZE": "1048576"});
    assert_eq!((&conditions["channels"], &conditions["variables"]), (&serde_json::json!([1, 2]), &told));
    assert_eq!((&conditions["nodes"], &conditions["ranks_per_node"]), (&2.into(), &1.into()));
    assert_eq!((&conditions["mps"], &conditions["chunks"]), (&true.into(), &serde_json::json!(["own"])));
    run.run(&format!("{one} --channels 1,2,4")).assert_error_with("channels [1,2], now [1,2,4]");
    let without = one.replace("--env NCCL_BUFFSIZE=1048576", "--channels 1,2");
    run.run(&without)
        .assert_error_with("variables {\"NCCL_BUFFSIZE\":\"1048576\"}, now {}); give the same again");
    // The shell's count as much as the words', and files of before do not say which they were.
    let inherited = Run {
        set: [run.set.clone(), vec![("NCCL_BUFFSIZE".into(), "1048576".into())]].concat(),
        dir: run.dir,
    };
    assert_eq!(inherited.run(&without).code, 0);
    let about = inherited.dir.path("s.csv.about.json");
    let mut said: serde_json::Value = serde_json::from_str(&fs::read_to_string(&about).unwrap()).unwrap();
    for name in ["variables", "channels", "chunks", "mps", "nodes", "ranks_per_node"] {
        assert!(said.as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    fs::write(&about, said.to_string()).unwrap();
    let document = inherited.run(&format!("{one} --channels 1,2")).json();
    assert_eq!(document["cells"], serde_json::json!([]), "it is there");
}

/// A reader of the file alone sees with how many threads it was measured.
#[test]
fn a_single_count_of_threads_has_its_column() {
    let run = Run::new(&[]);
    let one = format!("{SHORT} --collectives allreduce --threads 128 --json");
    run.run(&format!("{one} --sizes 1K")).json();
    assert_eq!(run.sweep("s.csv").threads, Some(128));
    // Files of before have none, and are gone on with all the same.
    let text = fs::read_to_string(run.dir.path("s.csv")).unwrap();
    let before: Vec<&str> = text.lines().map(|line| line.rsplit_once(',').unwrap().0).collect();
    fs::write(run.dir.path("s.csv"), before.join("\n") + "\n").unwrap();
    let document = run.run(&format!("{one} --sizes 1K,4K")).json();
    assert_eq!(document["cells"].as_array().unwrap().len(), 1, "only what was not there");
    let after = fs::read_to_string(run.dir.path("s.csv")).unwrap();
    assert!(after.starts_with(&before.join("\n")) && after.lines().count() == 2 * before.len() - 1);
}

/// A root that only sends is done before the others.
#[test]
fn the_clock_is_the_roots_or_the_last_ones() {
    let run = Run::new(&[("FAKE_EARLY", "1")]);
    let one = |clock: &str| {
        let words = format!(
            "sweep --ranks 2 --share-gpu --out {clock}.csv --rounds 3 --most-rounds 3 --sizes 1K --clock {clock} \
             --collectives broadcast --json"
        );
        let document = run.run(&words).json();
        assert_eq!(document["conditions"]["clock"], clock);
        document["cells"][0]["own_us"].as_f64().unwrap()
    };
    let ratio = one("slowest") / one("first");
    assert!((1.98..2.02).contains(&ratio), "{ratio}");
    let reminded = |clock: &str, collective: &str| {
        let words = "sweep --ranks 2 --share-gpu --rounds 3 --most-rounds 3 --sizes 1K";
        let out = format!("{clock}-{collective}.csv");
        let said = run.run(&format!("{words} --clock {clock} --collectives {collective} --out {out}"));
        assert_eq!(said.code, 0, "{}", said.stderr);
        said.stdout.contains("sweep with --clock slowest")
    };
    assert!(reminded("first", "broadcast"));
    assert!(!reminded("slowest", "broadcast") && !reminded("first", "allreduce"));
}

const THREE: &str =
    "sweep --ranks 2 --share-gpu --out s.csv --sizes 1K,4K,16K --collectives allreduce --json";

#[test]
fn cells_of_an_unusual_time_are_measured_anew() {
    // The calls of the second cell, and those of the reference after it.
    let run = Run::new(&[("FAKE_SLOW", "840,1480")]);
    let document = run.run(&format!("{THREE} --rounds 3 --most-rounds 3")).json();
    assert_eq!(document["again"], serde_json::json!({"anew": 2, "off": 0, "more": 0, "unsure": 3}));
    assert!(document["drift"].as_f64().unwrap() > 1.3, "{document}");
    for row in run.sweep("s.csv").rows {
        let (least, most) = (row.bytes as f64 / 1000.0 + 20.0, (row.bytes as f64 / 1000.0 + 20.0) * 1.3);
        assert!(row.median_us > least * 0.49 && row.max_us < most, "{row:?}");
    }
    let hurried = Run::new(&[("FAKE_SLOW", "840,1480")]);
    let said = hurried.run(&format!("{THREE} --rounds 3 --most-rounds 3 --budget 0"));
    assert!(said.stderr.contains("warning: the machine was not as usual during 2 cells"), "{}", said.stderr);
}

#[test]
fn what_is_unsure_gets_more_rounds() {
    let run = Run::new(&[("FAKE_NOISE", "0.6")]);
    let rounds = |document: &serde_json::Value| -> Vec<u64> {
        let cells = document["cells"].as_array().unwrap();
        cells.iter().map(|cell| cell["rounds"].as_u64().unwrap()).collect()
    };
    let document = run.run(&format!("{THREE} --rounds 3 --most-rounds 8 --bound 0.1")).json();
    assert_eq!(rounds(&document), [8, 8, 8], "{document}");
    assert_eq!((&document["again"]["more"], &document["again"]["unsure"]), (&3.into(), &3.into()));
    fs::remove_file(run.dir.path("s.csv")).unwrap();
    let document = run.run(&format!("{THREE} --rounds 3 --most-rounds 8 --bound 0.1 --budget 0")).json();
    assert_eq!((rounds(&document), &document["again"]["more"]), (vec![3, 3, 3], &0.into()));
}

/// As many calls as all rounds of one cell in a row would be, and more: the machine is slow for half of them all the same.
#[test]
fn a_comparison_is_of_different_times() {
    let own_us = |set: &[(&str, &str)]| {
        let words = "eval --ranks 2 --share-gpu --sizes 1K,4K,16K --collectives allreduce --rounds 6 --most-rounds 6 --json";
        let document = Run::new(set).run(words).json();
        document["cells"][0]["own_us"].as_f64().unwrap()
    };
    let ratio = own_us(&[("FAKE_SLOW", "1,160")]) / own_us(&[]);
    assert!((1.4..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn a_policy_is_compared_with_nccl_and_with_the_best() {
    let run = Run::new(&[]);
    let words =
        "eval --ranks 2 --share-gpu --sizes 1K,1M --collectives allreduce,broadcast --rounds 6 --json";
    let judged = |words: &str| -> serde_json::Value {
        let said = run.run(words);
        // The fake's best is not what the policy has learnt: it may lose.
        assert!(said.code <= 1, "{}", said.stderr);
        serde_json::from_str(&said.stdout).unwrap()
    };
    let searched = judged(&format!("{words} --against nccl,oracle"));
    for cell in searched["cells"].as_array().unwrap() {
        assert_eq!(cell["oracle"], "ring/simple 4ch");
        let headroom = cell["headroom"]["ratio"].as_f64().unwrap();
        assert!((1.9..2.1).contains(&headroom), "{cell}");
        let handed = cell["knobs"].as_str().unwrap();
        assert!(!handed.contains("chunk"), "{handed}");
        let (own, policy) = (cell["own_us"].as_f64().unwrap(), cell["policy_us"].as_f64().unwrap());
        let speedup = cell["speedup"]["ratio"].as_f64().unwrap();
        assert!((speedup / (own / policy) - 1.0).abs() < 0.02, "{cell}");
    }
    assert_eq!(searched["cells"].as_array().unwrap().len(), 4);
    let swept = run.run(&format!("{SHORT} --sizes 1K,1M --collectives allreduce,broadcast --clock slowest"));
    assert_eq!(swept.code, 0, "{}", swept.stderr);
    let known = judged(&format!("{words} --against nccl,oracle --sweep s.csv"));
    assert_eq!(known["cells"][3]["oracle"], "ring/simple 4ch");
    let headroom = known["headroom"]["ratio"].as_f64().unwrap();
    assert!((1.9..2.1).contains(&headroom), "{headroom}");
    run.run("eval --ranks 2 --share-gpu --against oracle --sweep s.csv --sizes 4K")
        .assert_error_with("it has no setting of allreduce 4K with 2 ranks");
    run.assert_nothing_is_left();
}

#[test]
fn what_comes_out_wrong_is_noticed() {
    let said = Run::new(&[("FAKE_WRONG", "1")]).run(&format!("{SHORT} --sizes 1K"));
    said.assert_error_with("rank 0: 1 numbers of allreduce 1K came out wrong with Own");
}

#[test]
fn what_is_missing_is_said() {
    let run = Run::new(&[("FAKE_GPUS", "0")]);
    let error = run.run(SHORT);
    error.assert_error_with("no GPU can be used: cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device");
    let run = Run::new(&[]);
    run.run(&format!("{SHORT} --nccl /nowhere/libnccl.so.2"))
        .assert_error_with("name its libnccl.so.2 with --nccl");
    run.run("sweep --ranks 2 --out s.csv").assert_error_with("2 ranks and 1 GPU: give --share-gpu");
    run.run(&format!("{SHORT} --link 10gbit --ip /nowhere/ip")).assert_error_with("/nowhere/ip is not there");
    run.run(&format!("{SHORT} --link fast")).assert_error_with("--link fast");
    run.run(&SHORT.replace("s.csv", "s.txt")).assert_error("error: --out s.txt: a sweep ends in .csv");
    run.run(&SHORT.replace("s.csv", "none/s.csv")).assert_error_with("none");
    run.run("sweep --ranks 65 --share-gpu --out s.csv --sizes 256")
        .assert_error_with("the smallest size is 260 bytes");
    let deaf =
        Run { dir: Dir::new(), set: [run.set.clone(), vec![("FAKE_TUNER".into(), "9".into())]].concat() };
    deaf.run(&format!("{SHORT} --sizes 1K")).assert_error_with("NCCL did not ask the plugin");
    let refused = run.run(&format!("{SHORT} --env DYNAMICCL_POLICY=/nowhere/p.safetensors --sizes 1K"));
    refused.assert_error_with(
        "ncclCommInitRank: ncclInvalidUsage (5): invalid usage: DynamICCL: DYNAMICCL_POLICY",
    );
    assert_eq!(run.dir.names(), ["tmp"], "nothing is written");
}

/// A sweep that takes its time, and a rank of it.
struct Victim {
    run: Run,
    child: Child,
    pid: u32,
}

impl Victim {
    fn new() -> Self {
        Victim::with(&[])
    }

    fn with(set: &[(&str, &str)]) -> Self {
        let run = Run::new(&[&[("FAKE_CALL_US", "1500")], set].concat());
        let child = run.start(&format!("{SHORT} --sizes 1K..16K --timeout 3"));
        begins(&run);
        let pid = *ranks_of(child.id()).get(1).expect("a rank 1");
        Victim { run, child, pid }
    }

    /// Waits for the end, looks whether anything is left, and gives exit code and message.
    fn end(self) -> (i32, String) {
        let begun = Instant::now();
        let output = self.child.wait_with_output().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        assert!(!self.run.sweep("s.csv").rows.is_empty(), "what was measured is whole");
        self.run.assert_nothing_is_left();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

/// Waits until the first cell of a sweep is in its file, while others are to come.
fn begins(run: &Run) {
    let (file, until) = (run.dir.path("s.csv"), Instant::now() + Duration::from_secs(30));
    while fs::read_to_string(&file).unwrap_or_default().lines().count() < 2 {
        assert!(Instant::now() < until, "the sweep does not begin");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Processes whose environment has this line, by rank where they have one.
fn with_variable(line: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found = Vec::new();
    for pid in pids {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let lines: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        if lines.contains(&line.as_bytes()) {
            let rank = lines.iter().find_map(|line| line.strip_prefix(b"DYNAMICCL_LIVE_RANK="));
            found.push((rank.map(<[u8]>::to_vec), pid));
        }
    }
    found.sort();
    found.into_iter().map(|(_, pid)| pid).collect()
}

fn ranks_of(parent: u32) -> Vec<u32> {
    with_variable(&format!("DYNAMICCL_LIVE_PARENT={parent}"))
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_rank_that_is_killed_is_named() {
    let victim = Victim::new();
    signal("-KILL", victim.pid);
    let (code, said) = victim.end();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("error: rank 1 died (killed by signal 9, SIGKILL); its last call: "), "{said}");
}

#[test]
fn a_rank_that_is_stopped_is_named() {
    let victim = Victim::new();
    signal("-STOP", victim.pid);
    let (code, said) = victim.end();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("error: rank 1 has said nothing for 3 s (stopped?); its last call: "), "{said}");
}

/// Ranks wait for each other in a call, so the one that hangs is not the only one that does not get on.
#[test]
fn a_rank_that_hangs_is_told_from_those_that_wait_for_it() {
    let stuck = |set: &str, said: &str| {
        let run = Run::new(&[("FAKE_HANG", set)]);
        run.run(&format!("{SHORT} --collectives allreduce --sizes 1K --timeout 2")).assert_error_with(said);
        run.assert_nothing_is_left();
    };
    // Two calls of warm-up; then nine of every timing, after the first of which it is the others that go on.
    stuck("1,11", "rank 1 is stuck for 2 s; its last call: timing allreduce 1K, NCCL's own");
    stuck("1,15", "ranks 0, 1 are stuck for 2 s, none of them behind another; rank 0's last call: timing");
}

/// All rounds are done by then.
#[test]
fn ranks_that_do_not_end_take_nothing_of_what_was_measured_along() {
    let run = Run::new(&[("FAKE_HANG", "1,0")]);
    let words = "--ranks 2 --share-gpu --collectives allreduce --sizes 1K --rounds 3 --most-rounds 3 --timeout 2 --json";
    for command in ["eval", "eval --launch-threads 128", "sweep --out s.csv"] {
        let said = run.run(&format!("{command} {words}"));
        assert_eq!(said.code, 2, "{command}: {}", said.stdout);
        let error = "error: rank 1 is stuck for 2 s; its last call: ncclCommDestroy";
        assert!(said.stderr.contains(error), "{command}: {}", said.stderr);
        let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        // Of ranks by turns one side alone was there.
        let cells = if command.contains("threads") { 0 } else { 1 };
        assert_eq!(document["cells"].as_array().unwrap().len(), cells, "{command}: {document}");
        run.assert_nothing_is_left();
    }
}

#[test]
fn an_interrupt_leaves_nothing() {
    let victim = Victim::new();
    signal("-INT", victim.child.id());
    let (code, said) = victim.end();
    assert_eq!((code, said.lines().last()), (130, Some("interrupted")));
}

/// Killed, it cannot tidy up itself.
#[test]
fn a_coordinator_that_is_killed_leaves_nothing() {
    let victim = Victim::new();
    assert!(victim.run.left().len() >= 5, "itself, two ranks, MPS and a guard");
    let Victim { run, mut child, .. } = victim;
    signal("-KILL", child.id());
    child.wait().unwrap();
    run.assert_nothing_is_left_soon();
    assert!(!run.sweep("s.csv").rows.is_empty(), "what was measured is whole");
}

/// The first interrupt waits for MPS, the second one for nobody.
#[test]
fn a_second_interrupt_leaves_nothing() {
    let victim = Victim::with(&[("FAKE_MPS_SLOW", "2")]);
    let Victim { run, mut child, .. } = victim;
    signal("-INT", child.id());
    thread::sleep(Duration::from_millis(700));
    let begun = Instant::now();
    signal("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    run.assert_nothing_is_left_soon();
}

/// Ranks as a launcher starts them: the same words, and variables of their own.
fn launched(run: &Run, words: &str, ranks: &[&[(&str, &str)]]) -> Vec<(i32, String, String)> {
    ends(launch(run, words, ranks))
}

fn launch(run: &Run, words: &str, ranks: &[&[(&str, &str)]]) -> Vec<Child> {
    launch_as(run, &Run::words(words), ranks)
}

fn launch_as(run: &Run, words: &str, ranks: &[&[(&str, &str)]]) -> Vec<Child> {
    let start = |rank: &&[(&str, &str)]| {
        let mut command = program(&run.dir, words, &run.variables());
        command.envs(rank.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    ranks.iter().map(start).collect()
}

/// Exit code, what it printed and what it said of each.
fn ends(children: Vec<Child>) -> Vec<(i32, String, String)> {
    let end = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    children.into_iter().map(end).collect()
}

/// A port that nobody has.
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const SECRET: (&str, &str) = ("DYNAMICCL_LIVE_SECRET", "a secret of the test");
const BRIEF: &str =
    "sweep --out s.csv --rounds 3 --most-rounds 3 --collectives allreduce --sizes 1K,4K --json";

#[test]
fn ranks_of_every_launcher_find_each_other() {
    let here = format!("127.0.0.1:{}", port());
    let before = (port() - 1).to_string();
    let torch = |rank| {
        [
            ("RANK", rank),
            ("WORLD_SIZE", "2"),
            ("LOCAL_RANK", rank),
            ("LOCAL_WORLD_SIZE", "2"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", before.as_str()),
            SECRET,
        ]
    };
    let mpi = |rank| {
        [
            ("OMPI_COMM_WORLD_RANK", rank),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", rank),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            SECRET,
        ]
    };
    let slurm =
        |rank| [("SLURM_PROCID", rank), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_LOCALID", rank), SECRET];
    // The last comes first: who waits for whom is up to the machine.
    for (words, ranks) in [
        (String::new(), [&torch("1")[..], &torch("0")]),
        (format!(" --rendezvous {here}"), [&mpi("1"), &mpi("0")]),
        (format!(" --rendezvous {here} --threads 128,256"), [&slurm("1"), &slurm("0")]),
    ] {
        let run = Run::new(&[("FAKE_GPUS", "2")]);
        let said = launched(&run, &format!("{BRIEF}{words}"), &ranks);
        let (code, out, err) = &said[1];
        assert_eq!((said[0].0, *code), (0, 0), "{err} {}", said[0].2);
        assert_eq!(said[0].1, "", "only rank 0 reports");
        let document: serde_json::Value = serde_json::from_str(out).unwrap();
        assert_eq!(document["conditions"]["ranks"], 2);
        assert_eq!(
            (&document["conditions"]["nodes"], &document["conditions"]["ranks_per_node"]),
            (&1.into(), &2.into())
        );
        let shifts = if words.contains("threads") { 2 } else { 1 };
        assert_eq!(document["cells"].as_array().unwrap().len(), 2 * shifts);
        run.assert_nothing_is_left();
    }
}

#[test]
fn a_rank_of_a_launcher_that_is_missing_or_unknown_is_named() {
    let run = Run::new(&[("FAKE_GPUS", "2")]);
    let here = format!("{BRIEF} --rendezvous 127.0.0.1:{}", port());
    let rank = |rank, secret| {
        [("OMPI_COMM_WORLD_RANK", rank), ("OMPI_COMM_WORLD_SIZE", "2"), ("DYNAMICCL_LIVE_SECRET", secret)]
    };
    let said = launched(&run, &here, &[&rank("0", "short")]);
    assert!(said[0].0 == 2 && said[0].2.contains("-x DYNAMICCL_LIVE_SECRET"), "{}", said[0].2);
    // Who does not know the secret is sent away, and then missing.
    let said = launched(
        &run,
        &format!("{here} --wait 2"),
        &[&rank("0", "a secret of the test"), &rank("1", "another secret that fits")],
    );
    assert_eq!((said[0].0, said[1].0), (2, 2));
    assert!(said[0].2.contains("rank 1 did not come within 2 s"), "{}", said[0].2);
    assert!(said[1].2.contains("rank 1 left before its work was done"), "{}", said[1].2);
    run.assert_nothing_is_left();
}

/// Its coordinator is on another machine, and it cannot see that nobody needs it any more.
#[test]
fn a_rank_of_a_launcher_that_is_stopped_is_named_and_leaves_nothing() {
    let run = Run::new(&[("FAKE_GPUS", "2"), ("FAKE_CALL_US", "1500")]);
    let rank = |rank| [("OMPI_COMM_WORLD_RANK", rank), ("OMPI_COMM_WORLD_SIZE", "2"), SECRET];
    let words = format!("{BRIEF} --rendezvous 127.0.0.1:{} --timeout 3", port());
    let children = launch(&run, &words, &[&rank("0"), &rank("1")]);
    begins(&run);
    signal("-STOP", ranks_of(children[1].id())[0]);
    let stopped = Instant::now();
    let said = ends(children);
    assert!(stopped.elapsed() < Duration::from_secs(20), "{:?}", stopped.elapsed());
    assert_eq!((said[0].0, said[1].0), (2, 2));
    assert!(said[0].2.contains("error: rank 1 has said nothing for 3 s (stopped?)"), "{}", said[0].2);
    assert!(said[1].2.contains("error: rank 1 left before its work was done (silent for "), "{}", said[1].2);
    run.assert_nothing_is_left();
}

/// Ranks wait for rank 0 as long as it waits for them, and no longer.
#[test]
fn a_rank_waits_for_rank_0_as_long_as_it_is_told_to() {
    let run = Run::new(&[("FAKE_GPUS", "2")]);
    let rank = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2"), SECRET];
    let begun = Instant::now();
    let said = launched(&run, &format!("{BRIEF} --rendezvous 127.0.0.1:{} --wait 2", port()), &[&rank]);
    assert!(said[0].0 == 2 && said[0].2.contains("the coordinator cannot be reached"), "{}", said[0].2);
    assert!((2..30).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    run.assert_nothing_is_left();
}

#[test]
fn several_threads_are_swept_with_ranks_of_their_own() {
    let run = Run::new(&[]);
    let words = "sweep --ranks 2 --share-gpu --out s.csv --rounds 3 --most-rounds 3 --collectives allreduce --json \
                 --threads 128,256";
    let document = run.run(&format!("{words} --sizes 1K")).json();
    let threads: Vec<u64> =
        document["cells"].as_array().unwrap().iter().map(|cell| cell["threads"].as_u64().unwrap()).collect();
    assert_eq!(threads, [128, 256]);
    // What is there already is not measured again, of either.
    let document = run.run(&format!("{words} --sizes 1K,4K --logs logs")).json();
    assert_eq!(document["cells"].as_array().unwrap().len(), 2);
    let logs = fs::read_dir(run.dir.path("logs")).unwrap().flatten();
    let mut logs: Vec<_> = logs.map(|log| log.file_name().into_string().unwrap()).collect();
    logs.sort();
    assert_eq!(logs, ["rank0.log", "rank0.start2.log", "rank1.log", "rank1.start2.log"]);
    let sweeps = sweep::read(&run.dir.path("s.csv")).unwrap();
    let seen: Vec<_> = sweeps.iter().map(|sweep| (sweep.threads, sweep.rows.len())).collect();
    assert_eq!(seen, [(Some(128), 42), (Some(256), 42)]);
    for (fast, slow) in sweeps[0].rows.iter().zip(&sweeps[1].rows) {
        assert_eq!((fast.bytes, fast.setting), (slow.bytes, slow.setting));
        let ratio = fast.median_us / slow.median_us;
        assert!((0.78..0.82).contains(&ratio), "{fast:?} {slow:?}");
    }
    run.run(&format!("{} --threads 128,256", words.replace("sweep", "eval").replace("--out s.csv", "")))
        .assert_error_with("--threads");
}

/// A shell in which jobs are started has words for their plugins.
#[test]
fn ranks_are_told_what_the_words_say_and_not_what_the_shell_does() {
    let run = Run::new(&[
        ("DYNAMICCL_CONTEXT", "/nowhere/context.json"),
        ("DYNAMICCL_POLICY", "/nowhere/p.safetensors"),
        ("DYNAMICCL_EXPECT", "1234"),
    ]);
    let words =
        "eval --ranks 2 --share-gpu --collectives allreduce --sizes 1K --rounds 3 --most-rounds 3 --json";
    let said = run.run(words);
    assert!(said.code <= 1, "{}", said.stderr);
    run.run(&format!("{words} --env DYNAMICCL_EXPECT=1234")).assert_error_with("DYNAMICCL_EXPECT");
}

/// NCCL's own ranks and the policy's are others, so the threads of one are not those of the other.
#[test]
fn a_policy_is_compared_with_threads_of_its_own() {
    let run = Run::new(&[]);
    let words =
        "eval --ranks 2 --share-gpu --collectives allreduce --sizes 1K,64K --rounds 3 --most-rounds 7";
    let said = run.run(&format!("{words} --launch-threads 128 --json"));
    // The fake's best is not what the policy has learnt: it may lose.
    assert!(said.code <= 1, "{}", said.stderr);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (&document["launch_threads"], &document["conditions"]["threads"][0]),
        (&128.into(), &128.into())
    );
    let cells = document["cells"].as_array().unwrap();
    // Seven rounds in three starts of either side.
    assert_eq!(cells.iter().map(|cell| cell["rounds"].as_u64().unwrap()).collect::<Vec<_>>(), [9, 9]);
    run.run(&format!("{words} --launch-threads 128 --against oracle")).assert_error_with("nccl alone");
}

#[test]
fn chunk_sizes_are_swept_where_nccl_asks_for_them() {
    let words = "sweep --ranks 2 --share-gpu --out s.csv --rounds 3 --most-rounds 3 --sizes 1K --collectives \
                 allreduce,broadcast --chunks half,double --json";
    Run::new(&[]).run(words).assert_error_with("asks tuners through interface 5, which knows no chunk sizes");
    let run = Run::new(&[("FAKE_TUNER", "6")]);
    let document = run.run(words).json();
    let sweep = run.sweep("s.csv");
    assert_eq!(sweep.rows.len(), (1 + 4 * 5 * 3) + (1 + 2 * 5 * 3));
    for cell in document["cells"].as_array().unwrap() {
        assert_eq!(cell["best"], "ring/simple 4ch half chunk", "{cell}");
    }
    let best = sweep.rows.iter().min_by(|a, b| a.median_us.total_cmp(&b.median_us)).unwrap();
    assert_eq!(best.chunk, dynamiccl_spec::ChunkChoice::Half);
}

#[test]
fn what_channels_cost_compute_is_measured() {
    let run = Run::new(&[]);
    let document = run.run(&format!("{SHORT} --sizes 1K --collectives allreduce --beside 0.5 --json")).json();
    // Half of 132 multiprocessors, between two ranks.
    assert_eq!(document["conditions"]["load"], 33);
    let cell = &document["cells"][0];
    let (own, best) = (cell["own_slowdown"].as_f64().unwrap(), cell["best_slowdown"].as_f64().unwrap());
    // The load takes as long as eight calls; every channel takes 1 µs of each from it.
    let alone = 8.0 * cell["own_us"].as_f64().unwrap();
    assert!(((own - 1.0) * alone / 8.0 - 2.0).abs() < 0.1, "{own} of {alone}");
    assert!(((best - 1.0) * alone / 8.0 - 4.0).abs() < 0.2, "{best} of {alone}");
    for row in run.sweep("s.csv").rows {
        let channels =
            if let Setting::Knobs { channels, .. } = row.setting { channels.unwrap_or(0) } else { 2 };
        let lost = (row.slowdown.expect("compute ran beside it") - 1.0) * alone / 8.0;
        assert!((lost / f64::from(channels) - 1.0).abs() < 0.1, "{row:?} lost {lost}");
    }
    let without = run.run(&format!("{SHORT} --sizes 1K --collectives allreduce"));
    without.assert_error_with("other conditions");
}

/// Ranks of two machines have a GPU each, however many there are.
#[test]
fn compute_is_shared_by_the_ranks_of_a_machine() {
    let run = Run::new(&[]);
    let rank = |rank| {
        [
            ("OMPI_COMM_WORLD_RANK", rank),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
            SECRET,
        ]
    };
    let words = format!("{BRIEF} --rendezvous 127.0.0.1:{} --share-gpu --beside 0.5", port());
    let said = launched(&run, &words, &[&rank("1"), &rank("0")]);
    assert_eq!((said[0].0, said[1].0), (0, 0), "{} {}", said[0].2, said[1].2);
    let document: serde_json::Value = serde_json::from_str(&said[1].1).unwrap();
    assert_eq!(document["conditions"]["load"], 66, "half of 132 multiprocessors");
}

const EPISODES: &str =
    "train --ranks 2 --share-gpu --sizes 64K --collectives allreduce,broadcast --out p.safetensors";

/// The policy decides calls of real ranks and learns from them, within its budget.
#[test]
fn a_policy_learns_on_live_episodes() {
    let run = Run::new(&[]);
    let document = run.run(&format!("{EPISODES} --calls 600 --seconds 60 --json")).json();
    assert_eq!(document["way"], "live");
    let calls = document["calls"].as_u64().unwrap();
    assert!((20..=600).contains(&calls), "{document}");
    let line = &document["sweeps"][0];
    assert_eq!((&line["sweep"], &line["ranks"]), (&"live_2ranks".into(), &2.into()));
    let speedup = |of: &str| line[of]["speedup"].as_f64().unwrap();
    assert!(speedup("after") >= speedup("before"), "{document}");
    let policy = Frozen::open(&run.dir.path("p.safetensors")).unwrap();
    let lessons = format!("{calls} calls on 2 real ranks and full");
    assert_eq!(policy.about.training.curriculum, lessons);
    assert_eq!(policy.about.training.parent, Some(Frozen::shipped().unwrap().hash()));
    assert!(policy.about.training.command.contains("--ranks 2 --calls 600 --slowdown 2"));
    run.assert_nothing_is_left();
}

/// Rank 0 alone is asked by the environment; the others are to hear that all is done, too.
#[test]
fn every_rank_of_a_launcher_ends_well_after_a_training_and_a_check() {
    let run = Run::new(&[("FAKE_GPUS", "2")]);
    let words = format!(
        "train --share-gpu --sizes 64K --collectives allreduce --out p.safetensors --calls 600 --seconds 60 --json \
         --rendezvous 127.0.0.1:{}",
        port()
    );
    let rank = |rank| {
        [
            ("OMPI_COMM_WORLD_RANK", rank),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("CUDA_MPS_PIPE_DIRECTORY", "m"),
            SECRET,
        ]
    };
    let said = launched(&run, &words, &[&rank("1"), &rank("0")]);
    assert_eq!((said[0].0, said[1].0), (0, 0), "{} {}", said[0].2, said[1].2);
    assert_eq!(said[0].1, "", "only rank 0 reports");
    Frozen::open(&run.dir.path("p.safetensors")).unwrap();
    let words = format!(
        "check-env live --share-gpu --sizes 1K,64K --steps 500 --json --rendezvous 127.0.0.1:{} --library {}",
        port(),
        library().display()
    );
    let said = ends(launch_as(&run, &words, &[&rank("1"), &rank("0")]));
    assert_eq!((said[0].0, said[1].0), (0, 0), "{} {}", said[0].2, said[1].2);
    assert_eq!(said[0].1, "", "only rank 0 reports");
    let document: serde_json::Value = serde_json::from_str(&said[1].1).unwrap();
    assert_eq!((&document["ok"], &document["curriculum"]), (&true.into(), &serde_json::Value::Null));
    run.assert_nothing_is_left();
}

/// A training that would go on for long, so much time after its ranks were there.
fn long_training(run: &Run, after: Duration) -> Child {
    let child = run.start(&format!("{EPISODES} --calls 1000000 --seconds 100"));
    let until = Instant::now() + Duration::from_secs(30);
    while ranks_of(child.id()).len() < 2 && Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(after);
    child
}

#[test]
fn an_interrupt_saves_what_was_learnt() {
    let run = Run::new(&[("FAKE_CALL_US", "200")]);
    let child = long_training(&run, Duration::from_secs(3));
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().last()), (Some(130), Some("interrupted")), "{said}");
    Frozen::open(&run.dir.path("p.safetensors")).unwrap();
    run.assert_nothing_is_left_soon();
}

#[test]
fn real_ranks_keep_the_contract_of_environments() {
    let words = |more: &str| {
        let library = library();
        let words = "check-env live --ranks 2 --share-gpu --sizes 1K,64K --steps 500";
        format!("{words} --library {} {more}", library.display())
    };
    let run = Run::new(&[]);
    let document = run.dir.run_with(&words("--json"), &run.variables()).json();
    assert_eq!((&document["id"], &document["ok"]), (&"live-v1".into(), &true.into()), "{document}");
    run.assert_nothing_is_left();
    let none = Run::new(&[("FAKE_GPUS", "0")]);
    none.dir.run_with(&words(""), &none.variables()).assert_error_with("no GPU can be used");
    let apart = "check-env live --ranks 2 --sizes 1K";
    none.dir.run_with(apart, &none.variables()).assert_error_with("--cluster: name the machine");
}
