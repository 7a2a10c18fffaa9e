//! NCCL's own decision against tables of what NCCL does.
//!
//! `nccl-default-*.csv` come from NCCL 2.30.7's formulas and were compared with its compiled source;
//! every row must agree to the printed digit. The odd cases add sizes, node counts, releases and
//! settings that the regular grid leaves out.

mod support;

use std::collections::HashMap;

use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::nccl::{Communicator, Version};
use dynamiccl_spec::{ChunkChoice, Collective, CostTable, Overrides, Pair};
use support::{Mismatches, percent_6g};

/// Communicators by what their rows have in common.
#[derive(Default)]
struct Communicators(HashMap<String, Communicator>);

impl Communicators {
    /// A name with `+sharp` has CollNet on.
    fn get(&mut self, topology: &str, nodes: u32, version: Version, environment: &str) -> &Communicator {
        let key = format!("{topology} {nodes} {version} {environment}");
        self.0.entry(key).or_insert_with(|| {
            let mut overrides = Overrides::default();
            for (variable, value) in environment.split_whitespace().filter_map(|set| set.split_once('=')) {
                overrides.set(variable, value).unwrap();
            }
            let name = topology.strip_suffix("+sharp").unwrap_or(topology);
            let options =
                CommOptions { sharp: name != topology, version, overrides, ..CommOptions::default() };
            Cluster::load(name).unwrap().communicator(nodes, &options).unwrap()
        })
    }
}

fn rows(text: &'static str) -> impl Iterator<Item = HashMap<String, String>> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    reader.into_records().map(move |record| {
        header
            .iter()
            .zip(record.unwrap().iter())
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    })
}

fn number<T: std::str::FromStr>(row: &HashMap<String, String>, key: &str) -> T {
    row[key].parse().unwrap_or_else(|_| panic!("{key} = {}", row[key]))
}

fn pair(algorithm: &str, protocol: &str) -> Pair {
    Pair::new(algorithm.parse().unwrap(), protocol.parse().unwrap())
}

/// NCCL's decision and predicted time in the words of the tables.
fn predicted(table: &CostTable, pair: Pair) -> String {
    table.get(pair).map_or("unavailable".to_owned(), |micros| percent_6g(f64::from(micros)))
}

#[test]
fn every_cost_pick_channel_and_thread_count_is_nccls() {
    let mut communicators = Communicators::default();
    let mut mismatches = Mismatches::default();
    let mut operations: HashMap<String, (usize, usize)> = HashMap::new();
    let mut count = 0;
    for row in rows(include_str!("data/nccl-default-golden.csv")) {
        count += 1;
        let collective: Collective = row["collective"].parse().unwrap();
        let bytes = number(&row, "size_bytes");
        let communicator = communicators.get(&row["topology"], number(&row, "n_nodes"), Version::V2_30, "");
        let table = communicator.cost_table(collective, bytes, 1);
        let decision = communicator.decide_from(&table, bytes).unwrap();
        let ours = format!(
            "{} {} {} {}",
            predicted(&table, pair(&row["algo"], &row["proto"])),
            decision.pair,
            decision.channels,
            decision.threads
        );
        let theirs = format!(
            "{} {}/{} {} {}",
            row["time_us"],
            row["picked_algo"],
            row["picked_proto"],
            row["picked_nchannels"],
            row["picked_nthreads"]
        );
        let place = format!("{} {} nodes {collective} {bytes}", row["topology"], row["n_nodes"]);
        operations.entry(place.clone()).or_insert((0, table.mask().len())).0 += 1;
        mismatches.compare(|| format!("{place} {}/{}", row["algo"], row["proto"]), &ours, &theirs);
    }
    for (place, (listed, available)) in operations {
        mismatches.compare(
            || format!("{place}: available pairs"),
            &available.to_string(),
            &listed.to_string(),
        );
    }
    mismatches.finish();
    assert_eq!(count, 28_520);
}

#[test]
fn every_launch_is_nccls() {
    let mut communicators = Communicators::default();
    let mut mismatches = Mismatches::default();
    let mut count = 0;
    for row in rows(include_str!("data/nccl-default-decisions.csv")) {
        count += 1;
        let collective: Collective = row["collective"].parse().unwrap();
        let bytes = number(&row, "size_bytes");
        let communicator = communicators.get(&row["topology"], number(&row, "n_nodes"), Version::V2_30, "");
        let decision = communicator.decide(collective, bytes, 1).unwrap();
        let launch =
            communicator.launch(collective, decision.pair, bytes, decision.channels, ChunkChoice::Own);
        let ours = format!(
            "{} {} {} {} {} {} {}",
            decision.pair,
            percent_6g(f64::from(decision.predicted_us)),
            communicator.channels(),
            decision.channels,
            launch.channels,
            decision.threads,
            launch.chunk_bytes
        );
        let keys =
            ["time_us", "comm_nchannels", "max_nchannels", "launched_nchannels", "nthreads", "chunk_bytes"];
        let theirs = keys.map(|key| row[key].as_str()).join(" ");
        let theirs = format!("{}/{} {theirs}", row["algo"], row["proto"]);
        let place = || format!("{} {} nodes {collective} {bytes}", row["topology"], row["n_nodes"]);
        mismatches.compare(place, &ours, &theirs);
    }
    mismatches.finish();
    assert_eq!(count, 7_902);
}

#[test]
fn odd_sizes_node_counts_releases_and_settings_are_nccls() {
    let mut communicators = Communicators::default();
    let mut mismatches = Mismatches::default();
    let mut count = 0;
    for row in rows(include_str!("data/nccl-odd-cases.csv")) {
        count += 1;
        let collective: Collective = row["collective"].parse().unwrap();
        let bytes = number(&row, "size_bytes");
        let version = number(&row, "version");
        let communicator =
            communicators.get(&row["topology"], number(&row, "n_nodes"), version, &row["environment"]);
        let table = communicator.cost_table(collective, bytes, number(&row, "pipe_ops"));
        let pick = communicator.decide_from(&table, bytes).map(|d| d.pair.to_string()).unwrap_or_default();
        let place = format!(
            "{version} {} {} nodes {collective} {bytes} x{} {}",
            row["topology"], row["n_nodes"], row["pipe_ops"], row["environment"]
        );
        mismatches.compare(|| format!("{place} pick"), &pick, &row["picked"]);
        let ours: Vec<String> = table
            .available()
            .map(|(pair, micros)| {
                let (channels, threads) = communicator.channels_threads(pair, bytes);
                let launch = communicator.launch(collective, pair, bytes, channels, ChunkChoice::Own);
                let micros = percent_6g(f64::from(micros));
                format!("{pair}={micros}:{channels}:{threads}:{}:{}", launch.channels, launch.chunk_bytes)
            })
            .collect();
        mismatches.compare(|| place.clone(), &ours.join(" "), &row["pairs"]);
    }
    mismatches.finish();
    assert_eq!(count, 5_143);
}
