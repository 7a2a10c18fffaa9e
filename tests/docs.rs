//! What the documentation promises.

use std::collections::BTreeSet;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_spec::variables::ALL;
use serde_json::Value;

use crate::util::{COMMANDS, Dir, assert_same, repository, repository_path, shape};

/// The text of the fenced blocks of one language in a markdown page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = page.match_indices(&fence).map(|(at, _)| &page[at + fence.len()..]);
    starts.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The keys of all objects in a document.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// The cluster file that the page shows.
fn example() -> Cluster {
    let page = repository("docs/clusters.md");
    let example = blocks(&page, "toml").into_iter().next().expect("an example in docs/clusters.md");
    Cluster::from_toml("docs/clusters.md", &example).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_cluster_page_shows_a_file_that_can_be_read() {
    let cluster = example();
    assert!(cluster.inter.is_some() && cluster.graphs.single.is_some() && cluster.graphs.multi.is_some());
}

#[test]
fn the_cluster_page_explains_every_field() {
    let mut cluster = example();
    let multi = cluster.graphs.multi.as_mut().expect("graphs on several nodes");
    (multi.collnet_chain, multi.collnet_direct) = (Some(multi.tree), Some(multi.tree));
    let mut fields = BTreeSet::new();
    keys(&serde_json::to_value(&cluster).expect("a cluster is JSON too"), &mut fields);
    let page = repository("docs/clusters.md");
    let missing: Vec<_> = fields.iter().filter(|field| !page.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "docs/clusters.md says nothing about {missing:?}");
}

/// Commands that between them print every field of every document.
const DOCUMENTS: &[&str] = &[
    "simulate --curriculum smoke --worlds 1",
    "simulate --cluster dgx_a100 --nodes 1 --collective allreduce --bytes 1M",
    "validate --sweeps sweeps",
    "validate --tables tables",
    "calibrate --log all_reduce.json --cluster h100_4gpu --out mine.toml",
    "calibrate --sweep sweeps --cluster h200_shared --out swept.toml",
    "tune --method tpe --cluster dgx_a100 --nodes 1 --collective allreduce --bytes 1M --budget 12",
    "tune --joint --cluster aws_p4d --nodes 2 --ranks-per-node 2 --collective allgather --bytes 1M --budget 5",
    "synth --cluster aws_p4d --nodes 2 --ranks-per-node 2 --collective allgather --bytes 1M --sketch pair",
    "check-env sim --steps 1000",
    "decide --policy tiny.safetensors --cluster dgx_a100 --nodes 1 --collective reduce",
    "eval --against nccl,oracle --clusters dgx_a100 --nodes 1 --worlds 1 --seeds 1",
    "eval --policy tiny.safetensors --against nccl --clusters tcp10g_1gpu --nodes 2 --worlds 1 --seeds 1",
    "inspect tiny.safetensors",
    "inspect nccl_tuner.conf",
    "export --policy tiny.safetensors --out t.conf --format nccl-csv --cluster dgx_a100 --nodes 2",
    "export --policy tiny.safetensors --out b.safetensors --history job.jsonl",
    "export --out c.safetensors --calibrate-guard --cluster dgx_a100 --nodes 1 --worlds 1",
    "wan --collectives 100",
    "wan --grid --collectives 10",
    "wan --policy none --traces 1 --collectives 20",
    "plugin path",
    "plugin install --to lib",
    "plugin doctor --ranks 1",
    "check-env rails --steps 200",
    "rails --jitter 0.02 --iterations 1 --repetitions 2",
    "rails --table3",
    "rails --bom",
    "live train --sweep sweep.csv --out fitted.safetensors --steps 1",
    "bench",
];

#[test]
fn the_command_page_explains_every_field() {
    let dir = Dir::new();
    dir.borrow("tests/data/sweeps", "sweeps");
    dir.borrow("tests/data/tables", "tables");
    dir.borrow("env/tests/data/live-h200-held-out/1gbit_2ranks.csv", "sweep.csv");
    dir.borrow("env/tests/data/logs/v2_17_3.json", "all_reduce.json");
    dir.borrow("env/tests/data/traces/job.jsonl", "job.jsonl");
    dir.write_policy("tiny.safetensors");
    dir.write("nccl_tuner.conf", "allreduce,0,4294967295,ring,ll,-1,-1,-1\n");
    let mut fields = BTreeSet::new();
    for words in DOCUMENTS {
        keys(&dir.run(&format!("{words} --json")).json(), &mut fields);
    }
    // Its verdict is no, which is no error.
    let proof = dir.run("eval --policy tiny.safetensors --proof tiers --worlds 1 --seeds 1 --json").stdout;
    keys(&serde_json::from_str(&proof).expect("a document"), &mut fields);
    let page = repository("docs/commands.md");
    let missing: Vec<_> = fields.iter().filter(|field| !page.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "docs/commands.md says nothing about {missing:?}");
}

#[test]
fn the_command_page_explains_every_flag() {
    let page = repository("docs/commands.md");
    for command in COMMANDS {
        let help = Dir::new().run(&format!("{command} -h")).stdout;
        let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        for flag in words.filter(|word| word.starts_with("--") && word.len() > 2) {
            assert!(
                page.contains(&format!("`{flag}")),
                "docs/commands.md says nothing about {flag} of {command}"
            );
        }
    }
}

#[test]
fn the_format_page_explains_every_key_and_every_tensor() {
    let page = repository("docs/frozen-format.md");
    let frozen = Dir::new().write_policy("tiny.safetensors");
    let keys = frozen.about.metadata().into_keys().chain(["content"]);
    let missing: Vec<_> = keys
        .chain(frozen.weights.tensors().map(|(name, _, _)| name))
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/frozen-format.md says nothing about {missing:?}");
    assert!(page.contains(dynamiccl_policies::frozen::FORMAT));
}

/// Where the README shows output of the program.
const SHOWN: [&str; 2] = ["<!-- output:simulate -->\n", "<!-- /output:simulate -->"];

/// Compares the form only: the numbers follow the constants. With INSTA_UPDATE=always, as for every
/// other snapshot, the README gets today's output instead.
#[test]
fn the_readme_shows_what_the_program_says() {
    let page = repository("README.md");
    let (above, rest) = page.split_once(SHOWN[0]).expect("the start of the output");
    let (shown, below) = rest.split_once(SHOWN[1]).expect("the end of the output");
    let words =
        page.lines().find_map(|line| line.strip_prefix("cargo run --release -- ")).expect("a command");
    let said = Dir::new().run(words);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let fresh = format!("```console\n$ dynamiccl {words}\n{}```\n", said.stdout);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        let page = [above, SHOWN[0], &fresh, SHOWN[1], below].concat();
        std::fs::write(repository_path("README.md"), page).expect("write the README");
    } else {
        assert_same(&shape(&fresh), &shape(shown));
    }
}

/// The cells of the README's row that begins with this.
fn row(of: &str) -> Vec<String> {
    let page = repository("README.md");
    let line = page.lines().find(|line| line.starts_with(&format!("| {of}"))).expect("the row");
    line.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_readme_has_the_figures_of_the_policy_that_is_shipped() {
    let results = Frozen::shipped().expect("the shipped policy").about.results;
    let result = |name: &str| results.iter().find(|(known, _)| known == name).expect("a result").1;
    let told = row("**shipped policy, where each call's time is told back**");
    assert!(told[2].starts_with(&format!("{:.3} ±", result("speedup.all"))), "{told:?}");
    assert_eq!(told[3], format!("{:.1} %", 100.0 * result("regret.all")));
    assert_eq!(told[4], format!("{:.3}", result("worst_cell.all")));
    let untold = row("**the same in the plugin, which is told no times**");
    assert_eq!(untold[3], format!("{:.1} %", 100.0 * result("regret_hold.all")));
}

#[test]
fn the_plugin_page_explains_every_variable() {
    let page = repository("docs/plugin.md");
    let missing: Vec<_> = ALL.iter().filter(|name| !page.contains(&format!("`{name}"))).collect();
    assert!(missing.is_empty(), "docs/plugin.md says nothing about {missing:?}");
}
