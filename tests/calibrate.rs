//! `calibrate`: what it recovers from a log of a machine that we made ourselves, and what it refuses.

use std::fmt::Write;

use dynamiccl_env::calibrate::FEWEST_SAMPLES;
use dynamiccl_env::cluster::{Calibration, Cluster, CommOptions};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::Collective;
use serde_json::{Value, json};

use crate::util::{Dir, assert_same, close, fields, number, repository};

/// How the machine in the logs differs from its description.
const TRUTH: Calibration = Calibration {
    launch: 1.25,
    intra_latency: 1.0,
    intra_bandwidth: 1.0,
    inter_latency: 1.5,
    inter_bandwidth: 0.7,
    channel_rate: 0.8,
};

/// Programs of nccl-tests.
const PROGRAMS: [(Collective, &str); 3] = [
    (Collective::AllReduce, "all_reduce_perf"),
    (Collective::AllGather, "all_gather_perf"),
    (Collective::Broadcast, "broadcast_perf"),
];

/// What nccl-tests would print on `nodes` nodes of a cluster that is as [`TRUTH`] says.
fn log(cluster: &str, nodes: u32) -> String {
    let mut cluster = Cluster::load(cluster).unwrap();
    cluster.calibration = TRUTH;
    let world = World::nominal(&ConstantsFile::full());
    let simulator = Simulator::new(&cluster, nodes, &CommOptions::default(), &world).unwrap();
    let mut text = String::new();
    for (collective, program) in PROGRAMS {
        writeln!(text, "# nccl-tests version 2.17.9 nccl-headers=23007 nccl-library=23007").unwrap();
        writeln!(text, "# Collective test starting: {program}").unwrap();
        for rank in 0..simulator.communicator().ranks() {
            let (host, device) = (rank / cluster.gpus_per_node, rank % cluster.gpus_per_node);
            let gpu = &cluster.gpu.name;
            writeln!(
                text,
                "#  Rank {rank} Group 0 Pid 1 on node-{host} device {device} [0000:07:00] NVIDIA {gpu}"
            )
            .unwrap();
        }
        writeln!(text, "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong")
            .unwrap();
        for bytes in (10..31).step_by(2).map(|octave| 1u64 << octave) {
            let time = simulator.own(collective, bytes).unwrap().micros;
            let half = format!("{time:.2} 1.00 1.00 0");
            writeln!(text, "{bytes} {} float sum -1 {half} {half}", bytes / 4).unwrap();
        }
        writeln!(text, "# Out of bounds values : 0 OK\n# Avg bus bandwidth : 1.00").unwrap();
    }
    text
}

/// A folder with the log of two DGX A100.
fn two_nodes() -> Dir {
    let dir = Dir::new();
    dir.write("pair.log", &log("dgx_a100", 2));
    dir
}

const WORDS: &str = "calibrate --log pair.log --cluster dgx_a100 --out mine.toml";

#[test]
fn a_machine_is_recovered_from_its_log() {
    let document = two_nodes().run(&format!("{WORDS} --json")).json();
    let (before, after) = (number(&document["before"]), number(&document["after"]));
    assert!(before > 0.15 && after < 0.02, "{before} {after}");
    let factor = |name: &str| number(&document["calibration"][name]);
    for (name, truth) in [("inter_bandwidth", TRUTH.inter_bandwidth), ("inter_latency", TRUTH.inter_latency)]
    {
        assert!((factor(name) / truth).ln().abs() < 0.1, "{name}: {} for {truth}", factor(name));
    }
}

#[test]
fn the_document_has_every_field_of_the_contract() {
    let document = two_nodes().run(&format!("{WORDS} --json")).json();
    let names = "after before calibration cluster collectives command constants left_out left_out_why logs \
                 nccl_version nodes notes out ranks rows schema seed";
    assert_eq!(fields(&document).join(" "), names);
    for (field, value) in [
        ("rows", json!(66)),
        ("left_out", json!(0)),
        ("left_out_why", json!([])),
        ("nodes", json!(2)),
        ("ranks", json!(16)),
        ("cluster", json!("dgx_a100")),
        ("logs", json!(["pair.log"])),
        ("out", json!("mine.toml")),
        ("nccl_version", json!("2.30")),
        ("constants", json!("full")),
        ("notes", json!([])),
    ] {
        assert_eq!(document[field], value, "{field}");
    }
    let factors = "channel_rate inter_bandwidth inter_latency intra_bandwidth intra_latency launch";
    assert_eq!(fields(&document["calibration"]).join(" "), factors);
    let collectives = document["collectives"].as_array().unwrap();
    let names: Vec<_> = collectives.iter().map(|c| (&c["collective"], &c["rows"])).collect();
    let rows = json!(22);
    assert_eq!(
        names,
        [(&"broadcast".into(), &rows), (&"allgather".into(), &rows), (&"allreduce".into(), &rows)]
    );
    assert_eq!(fields(&collectives[0]).join(" "), "after before collective rows");
}

#[test]
fn the_file_loads_again_and_simulates_what_was_measured() {
    let dir = two_nodes();
    let fitted = dir.run(&format!("{WORDS} --json")).json();
    let text = std::fs::read_to_string(dir.path("mine.toml")).unwrap();
    let first = "# dgx_a100 fitted to pair.log (2 nodes, 16 ranks, NCCL 2.30) with constants full";
    assert_same(first, text.lines().next().unwrap());
    let cluster = Cluster::load(dir.path("mine.toml").to_str().unwrap()).unwrap();
    let written = serde_json::to_value(cluster.calibration).unwrap();
    for factor in fields(&written) {
        assert!(close(number(&written[factor]), number(&fitted["calibration"][factor])), "{factor}");
    }
    let plain = Cluster::load("dgx_a100").unwrap();
    assert_eq!(Cluster { calibration: plain.calibration, name: plain.name.clone(), ..cluster }, plain);

    let call = "--nodes 2 --collective allreduce --bytes 64M --json";
    let time = |cluster: &str| {
        number(&dir.run(&format!("simulate --cluster {cluster} {call}")).json()["nccl"]["time_us"])
    };
    dir.write("truth.toml", &Cluster { calibration: TRUTH, ..plain }.to_toml().unwrap());
    let off = |cluster: &str| (time(cluster) / time("truth.toml")).ln().abs();
    assert!(off("mine.toml") < 0.05 && off("dgx_a100") > 0.1, "{} {}", off("mine.toml"), off("dgx_a100"));
}

#[test]
fn a_machine_can_be_fitted_from_its_dumps_alone() {
    let dir = two_nodes();
    dir.borrow("env/tests/data/xml/topo_dgx_a100.xml", "topo.xml");
    dir.borrow("env/tests/data/xml/graph_h100_two_nodes.xml", "graph.xml");
    let words = "calibrate --log pair.log --topo topo.xml --out mine.toml";
    let fitted = dir.run(&format!("{words} --json")).json();
    assert!(number(&fitted["after"]) < number(&fitted["before"]), "{fitted}");
    let call = "simulate --cluster mine.toml --nodes 2 --collective allreduce --bytes 1M --json";
    assert_eq!(dir.run(call).json()["cluster"], "mine");

    assert_eq!(dir.run(&format!("{words} --graph graph.xml")).code, 0);
    let source = Cluster::load(dir.path("mine.toml").to_str().unwrap()).unwrap().graphs.source;
    assert!(source.ends_with("multi: graph.xml"), "{source}");
}

#[test]
fn a_second_fit_starts_from_the_first() {
    let dir = two_nodes();
    dir.run(WORDS);
    let again = dir.run("calibrate --log pair.log --cluster mine.toml --out mine.toml --json").json();
    assert!(number(&again["before"]) < 0.02 && number(&again["after"]) < 0.02, "{again}");
    assert_eq!(dir.names(), ["mine.toml", "pair.log"]);
}

#[test]
fn several_logs_of_one_communicator_are_one_fit() {
    let dir = Dir::new();
    let text = log("dgx_a100", 2);
    let (first, rest) = text.split_at(text.match_indices("# nccl-tests").nth(1).unwrap().0);
    dir.write("a.log", first);
    dir.write("b.log", rest);
    let one = "calibrate --log a.log --log b.log --cluster dgx_a100 --out mine.toml";
    assert_eq!(dir.run(&format!("{one} --json")).json()["rows"], 66);

    dir.write("b.log", &log("dgx_a100", 4));
    dir.run(one).assert_error(
        "error: b.log: 4 nodes of 8 ranks with NCCL 2.30, but a.log has 2 nodes of 8 ranks with NCCL 2.30; \
         fit one after the other, the second to the result of the first",
    );
}

#[test]
fn a_json_log_is_read_too() {
    let dir = Dir::new();
    dir.borrow("env/tests/data/logs/v2_17_3.json", "out.json");
    let document = dir.run("calibrate --log out.json --cluster h100_4gpu --out mine.toml --json").json();
    assert_eq!((&document["ranks"], &document["nccl_version"]), (&json!(8), &json!("2.28")));
    assert!(number(&document["after"]) <= number(&document["before"]), "{document}");
    assert_eq!(document["notes"][0], "out.json: measured on NVIDIA H200; cluster h100_4gpu has H100-SXM5");
}

#[test]
fn the_text_shows_errors_and_factors() {
    let dir = two_nodes();
    insta::assert_snapshot!(dir.run(WORDS).shape(), @r"
    # dynamiccl 0.1.0 calibrate, seed N
    # dgx_a100 fitted to pair.log (N nodes, N ranks, NCCL N) with constants full
    #
    # collective rows before after
    # (|ln|) (|ln|)
    allgather N N N
    allreduce N N N
    broadcast N N N
    overall N N N
    #
    # factor value
    channel_rate N
    inter_bandwidth N
    inter_latency N
    intra_bandwidth N
    intra_latency N
    launch N
    Summary on N rows the model was off by N %, now by N %; wrote mine.toml
    ");
}

#[test]
fn rows_that_say_nothing_are_counted_with_their_reason() {
    let dir = Dir::new();
    let text = log("dgx_a100", 2).replace("all_gather_perf", "alltoall_perf");
    dir.write("pair.log", &text);
    let document = dir.run(&format!("{WORDS} --json")).json();
    assert_eq!((&document["rows"], &document["left_out"]), (&json!(44), &json!(22)));
    assert_eq!(document["left_out_why"], json!([{"why": "NCCL does not tune alltoall", "rows": 22}]));
}

/// A folder with a log that had these lines taken out or changed.
fn changed(change: impl Fn(String) -> String) -> Dir {
    let dir = Dir::new();
    dir.write("pair.log", &change(log("dgx_a100", 2)));
    dir
}

#[test]
fn a_log_that_does_not_say_its_nodes_needs_to_be_told() {
    let without_devices = |text: String| {
        text.lines().filter(|l| !l.contains(" Rank ")).map(|l| format!("{l}\n")).collect::<String>()
    };
    let dir = changed(without_devices);
    let line = "error: pair.log: it does not say on how many nodes it was measured; give --nodes";
    dir.run(WORDS).assert_error(line);
    let told = |words: &str| dir.run(&format!("{WORDS} {words} --json")).json();
    assert_eq!(told("--nodes 2")["ranks"], 16);
    assert_eq!(told("--nodes 2 --ranks-per-node 4")["ranks"], 8);
}

#[test]
fn ranks_that_do_not_fit_the_cluster_are_refused() {
    let dir = two_nodes();
    dir.run(&WORDS.replace("dgx_a100", "a100_4gpu")).assert_error(
        "error: pair.log: 16 ranks on 2 nodes are 8 on each, but cluster a100_4gpu has 4 GPUs in a node; \
         give another --cluster, or --nodes",
    );
    dir.run(&format!("{WORDS} --nodes 3"))
        .assert_error("error: pair.log: 16 ranks are not 3 nodes of 6; give --nodes and --ranks-per-node");
    dir.run(&format!("{WORDS} --ranks-per-node 4"))
        .assert_error("error: pair.log: 16 ranks are not 2 nodes of 4; give --nodes and --ranks-per-node");
    // The user knows better what one node is: several hosts can share an NVLink domain.
    let told = dir.run(&format!("{WORDS} --nodes 4 --json")).json();
    assert_eq!(told["notes"], json!(["pair.log: the log has 2 hosts; taken as 4 nodes because of --nodes"]));
    assert_eq!(dir.names(), ["mine.toml", "pair.log"]);
}

#[test]
fn logs_that_are_no_good_are_refused_and_nothing_is_written() {
    let half = "1024 256 float sum -1 9.10 0.11 0.11 0";
    let row = format!("{half} 9.00 0.11 0.11 0\n");
    let head = log("dgx_a100", 2).split("1024").next().unwrap().to_owned();
    let tail = "# Avg bus bandwidth : 0.11\n";
    let line = head.lines().count() + 1;
    let cases: [(String, String); 4] = [
        (
            format!("{head}{half}\n{tail}"),
            format!("error: pair.log: 1 usable row, a fit needs at least {FEWEST_SAMPLES}"),
        ),
        (
            format!("{head}{}", &row[..40]),
            format!(
                "error: pair.log:{line}: is cut off at \"{}\"; the row lacks columns: delete it or measure again \
                 (NCCL_DEBUG=WARN keeps rows whole)",
                row[..40].trim()
            ),
        ),
        (
            "hello\n".to_owned(),
            "error: pair.log:1: holds no measurements: \"no row of a table\"; \
             give the whole output of nccl-tests, with its table"
                .to_owned(),
        ),
        (
            format!("{head}{row}{row}{tail}").replace("all_reduce_perf", "alltoall_perf"),
            format!(
                "error: pair.log: 0 usable rows, a fit needs at least {FEWEST_SAMPLES}; \
                 left out: NCCL does not tune alltoall"
            ),
        ),
    ];
    for (text, error) in cases {
        let dir = changed(|_| text.clone());
        dir.run(WORDS).assert_error(&error);
        assert_eq!(dir.names(), ["pair.log"]);
    }
}

#[test]
fn a_truncated_json_log_is_refused() {
    let dir = Dir::new();
    let text = repository("env/tests/data/logs/v2_17_3.json");
    dir.write("out.json", &text[..text.len() / 2]);
    let said = dir.run("calibrate --log out.json --cluster h100_4gpu --out mine.toml");
    assert!(said.stderr.starts_with("error: out.json:1: is cut off at "), "{}", said.stderr);
    assert_eq!((said.code, said.stderr.lines().count()), (2, 1));
}

#[test]
fn the_output_must_be_a_cluster_file() {
    two_nodes()
        .run("calibrate --log pair.log --cluster dgx_a100 --out mine.cfg")
        .assert_error("error: --out mine.cfg: a cluster file ends in .toml");
}

#[test]
fn the_collective_can_be_told() {
    let dir =
        changed(|text| text.split("# nccl-tests").nth(1).map(|t| t.replace("all_reduce_perf", "")).unwrap());
    let told: Value = dir.run(&format!("{WORDS} --collective allreduce --json")).json();
    assert_eq!(told["rows"], 22);
}

/// Sweeps of several ranks and links teach one machine; the file is as good as any other cluster's.
#[test]
fn a_machine_is_learnt_from_sweeps() {
    let dir = Dir::new();
    dir.borrow("env/tests/data/live-h200", "sweeps");
    let words = "calibrate --sweep sweeps --cluster h200_shared --constants blind --out mine.toml";
    let document = dir.run(&format!("{words} --json")).json();
    assert_eq!(document["sweeps"], json!(["sweeps"]));
    assert_eq!((&document["logs"], &document["ranks"]), (&Value::Null, &Value::Null));
    assert_eq!(document["nccl_version"], "2.28");
    let (before, after) = (number(&document["before"]), number(&document["after"]));
    assert!(after < 0.7 * before, "{before} {after}");
    let text = std::fs::read_to_string(dir.path("mine.toml")).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "# h200_shared fitted to sweeps (5 sweeps with 2, 4, 8 ranks, NCCL 2.28) with constants blind"
    );
    let cluster = Cluster::from_toml("mine.toml", &text).unwrap();
    assert_ne!(cluster.calibration, Calibration::default());
    // A second fit has nothing left to do.
    let again = dir
        .run("calibrate --sweep sweeps --cluster ./mine.toml --constants blind --out more.toml --json")
        .json();
    assert!((number(&again["before"]) - after).abs() < 1e-9, "{again}");
    // Either logs or sweeps, and of sweeps nothing needs to be said that they say themselves.
    for (words, part) in [
        ("--sweep sweeps --log x", "--log <FILE>"),
        ("", "--log <FILE>"),
        ("--sweep sweeps --collective reduce", "--collective <K>"),
    ] {
        let refused = dir.run(&format!("calibrate {words} --cluster h200_shared --out y.toml"));
        assert_eq!(refused.code, 2, "{words}");
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
}

/// As for whoever else reads a sweep: what stands beside it counts, unless these words say otherwise.
#[test]
fn ranks_of_a_sweep_lie_as_the_file_beside_it_says() {
    let dir = Dir::new();
    let mut sweep = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us\n".to_owned();
    for (bytes, micros) in [(65_536, 40), (1 << 20, 60), (16 << 20, 200), (256 << 20, 2000)] {
        writeln!(sweep, "8,none,allreduce,{bytes},ring,Simple,,{micros},{micros}").unwrap();
    }
    dir.write("s.csv", &sweep);
    let fit = |about: &str, words: &str| {
        dir.write("s.csv.about.json", about);
        dir.run(&format!("calibrate --sweep s.csv --cluster dgx_h100 --out y.toml --json {words}"))
    };
    let factors = |about: &str, words: &str| fit(about, words).json()["calibration"].clone();
    let halves = factors(r#"{"ranks_per_node": 4, "shared": false}"#, "");
    assert_eq!(halves, factors(r#"{"nodes": 2, "shared": false}"#, ""));
    let whole = factors(r#"{"shared": false}"#, "");
    assert_ne!(halves, whole, "they fill a node where nobody says otherwise");
    assert_eq!(whole, factors(r#"{"ranks_per_node": 4, "shared": false}"#, "--nodes 1"));
    assert_eq!(halves, factors(r#"{"shared": false}"#, "--nodes 2"));
    fit(r#"{"nccl": "banana"}"#, "").assert_error(
        "error: s.csv: \"banana\" is no release of NCCL; give one such as 2.28.9 as nccl in the .about.json beside it",
    );
    assert_eq!(factors(r#"{"nccl": "banana"}"#, "--nccl 2.28"), whole);
}

#[test]
fn sweeps_of_two_releases_are_not_taken_for_one() {
    let dir = Dir::new();
    let data = "env/tests/data/live-h200-odd/loopback_5ranks.csv";
    for (name, nccl) in [("old.csv", "2.28.9"), ("new.csv", "2.30.7")] {
        dir.borrow(data, name);
        let about = repository(&format!("{data}.about.json")).replace("2.28.9", nccl);
        dir.write(&format!("{name}.about.json"), &about);
    }
    let words = "calibrate --sweep old.csv --sweep new.csv --cluster h200_shared --out y.toml";
    dir.run(words).assert_error(
        "error: new.csv: NCCL 2.30, but old.csv has 2.28; fit one after the other, the second to the result of the first",
    );
    // Who says what it was, knows.
    assert_eq!(dir.run(&format!("{words} --nccl 2.28")).code, 0);
}

/// What one set of factors cannot explain is not fitted by one, and what is unusual about all is said.
#[test]
fn sweeps_of_other_circumstances_are_not_fitted_together() {
    let dir = Dir::new();
    let data = "env/tests/data/live-h200-odd/loopback_5ranks.csv";
    let about = repository(&format!("{data}.about.json"));
    for (name, load) in [("plain.csv", 0), ("beside.csv", 66)] {
        dir.borrow(data, name);
        let about = about.replace("\"load\": 0", &format!("\"load\": {load}"));
        dir.write(&format!("{name}.about.json"), &about);
    }
    let fit = |words: &str| dir.run(&format!("calibrate {words} --cluster h200_shared --out y.toml --json"));
    let unusual = "measured with compute on 66 multiprocessors beside every call";
    fit("--sweep plain.csv --sweep beside.csv").assert_error(&format!(
        "error: beside.csv: {unusual}, but plain.csv with nothing unusual; fit each to a cluster file of its own"
    ));
    assert_eq!(fit("--sweep plain.csv").json()["notes"], json!([]));
    let note = format!("beside.csv: {unusual}: it says nothing of ranks without");
    assert_eq!(fit("--sweep beside.csv").json()["notes"], json!([note]));
}

#[test]
fn ranks_that_shared_a_gpu_are_on_no_other_nodes() {
    let dir = Dir::new();
    let data = "env/tests/data/live-h200-odd/loopback_5ranks.csv";
    dir.borrow(data, "s.csv");
    dir.write("s.csv.about.json", &repository(&format!("{data}.about.json")));
    dir.run("calibrate --sweep s.csv --cluster h200_shared --nodes 5 --out y.toml").assert_error(
        "error: --nodes 5: the ranks of s.csv shared a GPU, so that each was a node of its own to NCCL; leave --nodes out",
    );
}
