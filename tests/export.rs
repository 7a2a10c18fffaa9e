//! `export`.

use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::nccl_csv::{Channels, Rule, Table};

use crate::util::Dir;

const TABLE: &str = "export --policy tiny.safetensors --out t.conf --format nccl-csv --cluster dgx_h100";

#[test]
fn a_table_says_where_it_comes_from_and_leaves_nothing_open() {
    let dir = Dir::new();
    let frozen = dir.write_policy("tiny.safetensors");
    let document = dir.run(&format!("{TABLE} --nodes 2 --nccl 2.29 --json")).json();
    assert_eq!(
        (&document["table"]["ranks"], &document["table"]["nccl_version"]),
        (&16.into(), &"2.29".into())
    );
    let text = std::fs::read_to_string(dir.path("t.conf")).unwrap();
    assert!(text.starts_with(&format!("# policy tiny {:016x}, dynamiccl ", frozen.hash())), "{text}");
    assert!(text.contains("\n# cluster dgx_h100, 2 nodes, 16 ranks, NCCL 2.29\n"), "{text}");
    let table = Table::parse(&text).unwrap();
    assert_eq!(table.rules().count() as u64, document["table"]["rules"].as_u64().unwrap());
    assert!(table.rules().all(|rule| matches!(rule.channels, Channels::Exactly(_))));
    assert_eq!(table.rules().filter(|rule| rule.max_bytes == Rule::OPEN).count(), 5);
    assert_eq!(dir.run("inspect t.conf").code, 0);
}

#[test]
fn a_policy_comes_out_as_it_went_in() {
    let dir = Dir::new();
    let frozen = dir.write_policy("tiny.safetensors");
    let said = dir.run("export --policy tiny.safetensors --out b.safetensors");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(
        said.stdout.ends_with(&format!("Summary  wrote policy {:016x} to b.safetensors\n", frozen.hash()))
    );
    assert_eq!(std::fs::read(dir.path("b.safetensors")).unwrap(), frozen.to_bytes());
}

#[test]
fn a_recording_makes_another_policy_of_it() {
    let dir = Dir::new();
    dir.borrow("env/tests/data/traces/job.jsonl", "job.jsonl");
    let frozen = dir.write_policy("tiny.safetensors");
    let words = "export --policy tiny.safetensors --out b.safetensors --history job.jsonl --json";
    let document = dir.run(words).json();
    assert!(document["history"]["calls"].as_u64() > Some(0), "{document}");
    let read = Frozen::open(&dir.path("b.safetensors")).unwrap();
    assert_eq!(read.about.training.parent, Some(frozen.hash()));
    assert_eq!(document["hash"], format!("{:016x}", read.hash()));
    assert_ne!(document["hash"], document["source_hash"]);
}

#[test]
fn what_does_not_go_together_is_refused_and_nothing_is_written() {
    let dir = Dir::new();
    dir.write_policy("tiny.safetensors");
    dir.run(TABLE)
        .assert_error("error: --format nccl-csv: give --cluster and --nodes, a table is for one machine");
    dir.run("export --policy tiny.safetensors --out b.safetensors --nodes 2").assert_error(
        "error: a policy is for every machine; --cluster and --nodes go with --format nccl-csv",
    );
    dir.write("text.safetensors", "no policy");
    let said = dir.run("export --policy text.safetensors --out b.safetensors");
    assert!(said.stderr.starts_with("error: text.safetensors: 9 bytes are too few"), "{}", said.stderr);
    let said = dir.run(&format!("{TABLE} --nodes 2 --ranks-per-node 9"));
    assert!(said.stderr.contains("give 1 to 8"), "{}", said.stderr);
    assert_eq!(dir.names(), ["text.safetensors", "tiny.safetensors"]);
}
