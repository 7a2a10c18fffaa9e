//! `simulate`: its document, NCCL's side against golden values, worlds, and what it refuses.

use serde_json::Value;

use crate::util::{Dir, assert_same, close, fields, number, repository};

const WORDS: &str = "simulate --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1M";

fn document(words: &str) -> Value {
    Dir::new().run(&format!("{words} --json")).json()
}

#[test]
fn the_document_has_every_field_of_the_contract() {
    let document = document(WORDS);
    let expected = "bytes cluster collective command constants description env graph headroom knobs nccl \
                    nccl_version nodes notes ranks schedule schema seed simulated tier topo world best";
    let mut expected: Vec<_> = expected.split_whitespace().collect();
    expected.sort_unstable();
    assert_eq!(fields(&document), expected);
    for (field, value) in [
        ("command", "simulate".into()),
        ("seed", 1.into()),
        ("simulated", true.into()),
        ("cluster", "dgx_a100".into()),
        ("nodes", 2.into()),
        ("ranks", 16.into()),
        ("tier", 2.into()),
        ("collective", "allreduce".into()),
        ("bytes", (1 << 20).into()),
        ("nccl_version", "2.30".into()),
        ("world", Value::Null),
        ("constants", "full".into()),
        ("env", Value::Array(Vec::new())),
        ("notes", Value::Array(Vec::new())),
        ("topo", Value::Null),
        ("graph", Value::Null),
    ] {
        assert_eq!(document[field], value, "{field}");
    }
    let own = "algo chunk_bytes launched nchannels nthreads predicted_us proto table time_us";
    assert_eq!(fields(&document["nccl"]).join(" "), own);
    assert_eq!(fields(&document["nccl"]["table"][0]), ["algo", "proto", "time_us"]);
    let knobs =
        "algo chunk_bytes nchannels nthreads proto requested requested_chunk requested_nthreads time_us";
    assert_eq!(fields(&document["best"]).join(" "), knobs);
    assert_eq!(fields(&document["knobs"][0]).join(" "), knobs);
}

/// Calls with golden values: cluster, nodes, collective and bytes, as the golden tables spell them.
const GOLDEN: [[&str; 4]; 5] = [
    ["dgx_a100", "2", "allreduce", "1048576"],
    ["dgx_h100", "1", "allgather", "65536"],
    ["hgx_b200", "8", "allreduce", "67108864"],
    ["dgx_h100+sharp", "4", "allreduce", "16777216"],
    ["tcp10g_1gpu", "4", "reduce", "4096"],
];

/// The rows of one call in a golden table.
fn golden(file: &str, call: [&str; 4]) -> Vec<Vec<String>> {
    let table = repository(&format!("env/tests/data/{file}"));
    let rows = table.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let rows: Vec<_> =
        rows.filter(|row| [&row[0], &row[1], &row[3], &row[4]].map(String::as_str) == call).collect();
    assert!(!rows.is_empty(), "no {call:?} in {file}");
    rows
}

/// NCCL's part of the document of a call.
fn nccl([cluster, nodes, collective, bytes]: [&str; 4]) -> Value {
    let cluster = cluster.replace("+sharp", " --sharp");
    let words =
        format!("simulate --cluster {cluster} --nodes {nodes} --collective {collective} --bytes {bytes}");
    document(&words)["nccl"].clone()
}

/// Some fields of an object as a CSV file would have them.
fn cells<const N: usize>(value: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| value[name].as_str().map_or_else(|| value[name].to_string(), str::to_owned))
}

#[test]
fn nccls_predictions_are_golden() {
    for call in GOLDEN {
        let (rows, nccl) = (golden("nccl-default-golden.csv", call), nccl(call));
        let table = nccl["table"].as_array().expect("a table");
        assert_eq!(table.len(), rows.len(), "{call:?}");
        for (entry, row) in table.iter().zip(&rows) {
            assert_eq!(cells(entry, ["algo", "proto"])[..], row[5..7], "{call:?}");
            assert!(close(number(&entry["time_us"]), row[7].parse().unwrap()), "{entry} is not {row:?}");
        }
    }
}

#[test]
fn nccls_choice_is_golden() {
    for call in GOLDEN {
        let (rows, nccl) = (golden("nccl-default-decisions.csv", call), nccl(call));
        assert_eq!(cells(&nccl, ["algo", "proto"])[..], rows[0][5..7], "{call:?}");
        assert!(close(number(&nccl["predicted_us"]), rows[0][7].parse().unwrap()), "{call:?}");
        let launch = ["nchannels", "launched", "nthreads", "chunk_bytes"];
        assert_eq!(cells(&nccl, launch)[..], rows[0][9..13], "{call:?}");
    }
}

#[test]
fn the_best_is_the_fastest_and_never_slower_than_nccls_choice() {
    let clusters = ["dgx_a100 --nodes 2", "dgx_h100 --nodes 1", "tcp25g_1gpu --nodes 4 --world 3"];
    for (cluster, collective) in clusters.iter().zip(["allreduce", "reducescatter", "broadcast"]) {
        for bytes in ["1K", "1M", "256M"] {
            let words = format!("simulate --cluster {cluster} --collective {collective} --bytes {bytes}");
            let document = document(&words);
            let times: Vec<f64> =
                document["knobs"].as_array().unwrap().iter().map(|knob| number(&knob["time_us"])).collect();
            assert!(times.is_sorted(), "{words}");
            let (own, best) = (number(&document["nccl"]["time_us"]), number(&document["best"]["time_us"]));
            assert_eq!(times[0], best, "{words}");
            assert!(best <= own && times.contains(&own), "{words}");
            assert!(close(number(&document["headroom"]), own / best), "{words}");
        }
    }
}

#[test]
fn a_world_is_the_same_twice_and_not_the_nominal_one() {
    let dir = Dir::new();
    let [once, twice, nominal] =
        ["--world 7", "--world 7", ""].map(|world| dir.run(&format!("{WORDS} {world} --json")));
    assert_same(&once.stdout, &twice.stdout);
    let (drawn, nominal) = (once.json(), nominal.json());
    assert_eq!(drawn["world"], 7);
    assert_ne!(drawn["best"]["time_us"], nominal["best"]["time_us"]);
    assert_eq!(drawn["nccl"]["table"], nominal["nccl"]["table"], "NCCL knows nothing of worlds");
}

/// A folder with dumps of NCCL, and a file that is none.
fn dumps() -> Dir {
    let dir = Dir::new();
    dir.borrow("env/tests/data/xml/topo_dgx_a100.xml", "topo.xml");
    dir.borrow("env/tests/data/xml/graph_h100_two_nodes.xml", "graph.xml");
    dir.write("other.xml", "<svg/>\n");
    dir.write("cut.xml", "<system version=\"1\">\n  <cpu numaid=\"0\"");
    dir.write("plain.xml", "hello\n");
    dir
}

const CALL: &str = "--nodes 2 --collective allreduce --bytes 1M";

#[test]
fn a_topology_dump_is_a_cluster() {
    let document = dumps().run(&format!("simulate --topo topo.xml {CALL} --json")).json();
    assert_eq!([&document["cluster"], &document["topo"]], ["topo", "topo.xml"]);
    assert_eq!(document["notes"].as_array().unwrap().len(), 1, "links are guesses");
    let shipped = nccl(["dgx_a100", "2", "allreduce", "1048576"]);
    assert_eq!(document["nccl"]["table"], shipped["table"], "NCCL finds the graphs that we ship");
}

#[test]
fn dumped_graphs_replace_those_of_the_cluster() {
    let dir = dumps();
    let words = format!("simulate --cluster dgx_h100 {CALL}");
    let [plain, dumped] =
        ["", "--graph graph.xml"].map(|graph| dir.run(&format!("{words} {graph} --json")).json());
    assert_eq!(dumped["graph"], "graph.xml");
    assert_ne!(plain["nccl"]["table"], dumped["nccl"]["table"]);
    let text = dir.run(&format!("{words} --graph graph.xml")).stdout;
    assert!(text.contains("\n# NCCL's graphs from graph.xml\n"), "{text}");
}

#[test]
fn files_that_are_no_dump_are_refused() {
    let dir = dumps();
    let again = "let NCCL write a topology dump with NCCL_TOPO_DUMP_FILE=FILE";
    for (file, error) in [
        ("graph.xml", format!("graph.xml:1: <graphs> is not what a topology dump starts with; {again}")),
        ("other.xml", format!("other.xml:1: <svg> is not what a topology dump starts with; {again}")),
        ("cut.xml", format!("cut.xml:1: is not XML: the root node was opened but never closed; {again}")),
        ("plain.xml", format!("plain.xml:1: is not XML: unknown token at 1:1; {again}")),
        (
            "no.xml",
            "no.xml: cannot be read: No such file or directory (os error 2); check the path".to_owned(),
        ),
    ] {
        dir.run(&format!("simulate --topo {file} {CALL}")).assert_error(&format!("error: {error}"));
    }
    dir.run(&format!("simulate --cluster dgx_h100 --graph topo.xml {CALL}")).assert_error(
        "error: topo.xml:1: <system> is not what a graph dump starts with; \
         let NCCL write a graph dump with NCCL_GRAPH_DUMP_FILE=FILE",
    );
    dir.run(&format!("simulate --cluster dgx_h100 --topo topo.xml {CALL}"))
        .assert_error("error: the argument '--cluster <NAME|FILE>' cannot be used with '--topo <FILE>'");
}

#[test]
fn the_shell_changes_nothing_and_env_does() {
    let dir = Dir::new();
    let plain = dir.run(&format!("{WORDS} -q"));
    let shell = dir.run_with(WORDS, &[("NCCL_ALGO", "Ring")]);
    assert_same(&plain.stdout, &shell.stdout);
    let note = "NCCL_ALGO is set in this shell and not looked at; --env NCCL_ALGO=… would simulate it\n";
    assert_same(note, &shell.stderr);

    let given = dir.run(&format!("{WORDS} --env NCCL_ALGO=Ring --env NCCL_PROTO=^LL --json")).json();
    assert_eq!(given["env"], serde_json::json!(["NCCL_ALGO=Ring", "NCCL_PROTO=^LL"]));
    let table = given["nccl"]["table"].as_array().unwrap();
    let pairs: Vec<_> = table.iter().map(|entry| (&entry["algo"], &entry["proto"])).collect();
    assert_eq!(pairs, [(&"ring".into(), &"ll128".into()), (&"ring".into(), &"simple".into())]);
}

#[test]
fn the_text_reads_like_nccl_tests() {
    insta::assert_snapshot!(Dir::new().run(WORDS).shape(), @r"
    # dynamiccl 0.1.0 simulate, seed N
    # dgx_a100: DGX A100: N A100 on NVSwitch, N x N Gb/s InfiniBand
    # N nodes, N ranks, tier N; allreduce of 1M (N B)
    # simulated, world nominal, constants full; NCCL N
    # of each algorithm, protocol and channel count, the fastest threads and chunk
    #
    # algo proto nch nthr chunk predicted time algbw busbw vs nccl
    # (B) (us) (us) (GB/s) (GB/s)
    ALGO PROTO N N N N N N N N
    ALGO PROTO N N N N N N N N NCCL's choice
    Summary NCCL takes ALGO/PROTO with N channels: N µs, predicted N µs (simulated)
    fastest of N settings is ALGO/PROTO with N channels: N µs, N times as fast
    ");
}

#[test]
fn the_table_is_as_long_as_asked_and_has_nccls_choice() {
    let dir = Dir::new();
    for top in [0, 1, 30] {
        let said = dir.run(&format!("{WORDS} --top {top}"));
        let rows: Vec<_> = said.stdout.lines().filter(|line| line.starts_with("   ")).collect();
        let own = rows.iter().filter(|row| row.ends_with("NCCL's choice")).count();
        assert_eq!(own, 1, "{}", said.stdout);
        // NCCL's own choice, and the line about the fastest, come on top.
        assert!((1..=top + 2).contains(&rows.len()), "{}", said.stdout);
    }
}

#[test]
fn what_changes_the_meaning_of_the_numbers_is_noted() {
    let notes = |words: &str| document(&format!("simulate --cluster dgx_a100 {words}"))["notes"].clone();
    assert_eq!(
        notes("--nodes 1 --collective allgather --bytes 1000001")[0],
        "1000001 B do not divide by 8 ranks: NCCL would send 1000000 B, times are for the size as given"
    );
    assert_eq!(notes("--nodes 1 --collective allreduce --bytes 1000001").as_array().unwrap().len(), 0);
    assert_eq!(
        notes("--nodes 1 --collective allreduce --bytes 1M --ranks-per-node 4 --sharp"),
        serde_json::json!(["--sharp changes nothing: there is no CollNet graph on these nodes"])
    );
}

#[test]
fn collectives_that_nccl_does_not_tune_are_refused() {
    for collective in ["alltoall", "sendrecv"] {
        Dir::new().run(&WORDS.replace("allreduce", collective)).assert_error(&format!(
            "error: invalid value '{collective}' for '--collective <K>': NCCL does not tune {collective}, it has no \
             setting to choose (tuned: broadcast, reduce, allgather, reducescatter, allreduce)"
        ));
    }
}

#[test]
fn bad_variables_are_refused() {
    let dir = Dir::new();
    let error = |env: &str, line: &str| dir.run(&format!("{WORDS} {env}")).assert_error(line);
    error(
        "--env NCCL_ALGO",
        "error: invalid value 'NCCL_ALGO' for '--env <NAME=VALUE>': write it like NCCL_ALGO=Ring",
    );
    error(
        "--env NCCL_ALGO=rong",
        "error: --env NCCL_ALGO=rong: unknown element \"rong\"; did you mean \"Ring\"? \
         (known: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT)",
    );
    error(
        "--env NCCL_PROTO=LL --env NCCL_PROTO=Simple",
        "error: --env NCCL_PROTO=Simple: NCCL_PROTO is given twice, give it once",
    );
    error(
        "--env NCCL_ALGO=PAT",
        "error: cluster dgx_a100: NCCL has no algorithm left for allreduce; take back some of --env",
    );
}

#[test]
fn communicators_that_cannot_be_are_refused() {
    let dir = Dir::new();
    dir.run(&format!("{WORDS} --ranks-per-node 9"))
        .assert_error("error: cluster dgx_a100: 9 ranks per node: a node has 8 GPUs, give 1 to 8");
    dir.run(&WORDS.replace("dgx_a100", "gb200_nvl72"))
        .assert_error("error: cluster gb200_nvl72: 2 nodes: it has no [graphs.multi], give 1 node");
    for nodes in ["536870912", "4294967295"] {
        dir.run(&WORDS.replace("--nodes 2", &format!("--nodes {nodes}"))).assert_error(&format!(
            "error: cluster dgx_a100: {nodes} nodes with 8 ranks each: a job has at most 1048576 ranks, give 1 to 131072 nodes"
        ));
    }
}

#[test]
fn a_misspelt_key_of_a_cluster_file_is_named_with_its_line() {
    let dir = Dir::new();
    let text = repository("env/clusters/dgx_a100.toml");
    dir.write("mine.toml", &text.replacen("\nbandwidth =", "\nbandwith =", 1));
    let line = 1 + text[..text.find("\nbandwidth =").expect("a bandwidth")].matches('\n').count() + 1;
    let said = dir.run(&WORDS.replace("dgx_a100", "mine.toml"));
    let start = format!("error: mine.toml: TOML parse error at line {line}, column 1 | {line} | bandwith =");
    assert!(said.stderr.starts_with(&start), "{}", said.stderr);
    assert!(said.stderr.contains("unknown field `bandwith`, expected one of `link`"), "{}", said.stderr);
    assert_eq!((said.stderr.lines().count(), said.code), (1, 2), "{}", said.stderr);
}

#[test]
fn a_curriculum_is_surveyed_tier_by_tier() {
    let document = document("simulate --curriculum smoke --worlds 2");
    let tiers = document["tiers"].as_array().unwrap();
    assert_eq!(tiers.iter().map(|tier| tier["tier"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    for tier in tiers {
        let figure = |name: &str| tier[name].as_f64().unwrap();
        assert!(figure("headroom") >= 1.0 && figure("worst_default") >= figure("headroom"), "{tier}");
        assert_eq!(figure("cells"), 55.0);
    }
    let said = Dir::new().run("simulate --curriculum smoke --worlds 2 --progress never").stdout;
    assert!(said.contains("#  tier  all sizes  < 64K  64K-64M  > 64M  worst  where\n"), "{said}");
    for (words, expected) in
        [("smoke --cluster dgx_a100", "cannot be used with"), ("smok", "did you mean \"smoke\"?")]
    {
        let said = Dir::new().run(&format!("simulate --curriculum {words}"));
        assert!(said.code == 2 && said.stderr.contains(expected), "{}", said.stderr);
    }
    for words in [WORDS, "simulate"] {
        let said = Dir::new().run(&format!("{words} --worlds 2"));
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{words}");
    }
}
