//! `decide`: what a file would choose, beside NCCL's own choice.

use serde_json::Value;

use crate::util::{Dir, number};

const TABLE: &str =
    "allreduce,0,65536,tree,ll,2,-1,-1\nallreduce,65537,18446744073709551615,ring,simple,8,2,-1\n";

fn answers(words: &str) -> Vec<Value> {
    let dir = Dir::new();
    dir.write("table.csv", TABLE);
    let document = dir.run(&format!("decide --policy table.csv --cluster dgx_a100 {words} --json")).json();
    document["answers"].as_array().expect("answers").clone()
}

#[test]
fn a_table_decides_what_it_says_and_leaves_the_rest_to_nccl() {
    let answers = answers("--nodes 2");
    assert_eq!(answers.len(), 55);
    for answer in &answers {
        let (chosen, bytes) = (&answer["chosen"], answer["bytes"].as_u64().unwrap());
        let speedup = number(&answer["nccl"]["time_us"]) / number(&chosen["time_us"]);
        assert!((speedup / number(&answer["speedup"]) - 1.0).abs() < 1e-9);
        match (answer["collective"].as_str().unwrap(), bytes) {
            ("allreduce", 0..=65536) => {
                assert_eq!((&chosen["algo"], &chosen["proto"]), (&"tree".into(), &"ll".into()));
            }
            ("allreduce", _) => {
                assert_eq!((&chosen["algo"], &chosen["proto"]), (&"ring".into(), &"simple".into()));
                assert_eq!(chosen["nchannels"], 8);
            }
            _ => {
                assert_eq!(answer["reason"], "fallback no_entry");
                assert_eq!(chosen, &answer["nccl"]);
            }
        }
    }
}

#[test]
fn a_rule_for_other_nodes_does_not_match() {
    let answers = answers("--nodes 4 --collective allreduce --bytes 1M --bytes 4K");
    let reasons: Vec<_> = answers.iter().map(|answer| answer["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["fallback no_entry", "policy"]);
}

#[test]
fn the_table_of_decisions_reads_like_nccl_tests() {
    let dir = Dir::new();
    dir.write("table.csv", TABLE);
    let words =
        "decide --policy table.csv --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1K --bytes 1M";
    let said = dir.run(words);
    assert_eq!(said.code, 0, "{}", said.stderr);
    insta::assert_snapshot!(said.stdout);
}

#[test]
fn the_launch_is_recommended_to_be_pasted() {
    let dir = Dir::new();
    dir.write("table.csv", TABLE);
    dir.write_wild_policy("wild.safetensors");
    let words =
        |policy: &str| format!("decide --policy {policy} --cluster dgx_a100 --nodes 1 --env NCCL_ALGO=Ring");
    // A table never asks for threads.
    let document = dir.run(&format!("{} --json", words("table.csv"))).json();
    assert_eq!((&document["launch"]["threads"], number(&document["launch"]["speedup"])), (&Value::Null, 1.0));
    assert!(dir.run(&words("table.csv")).stdout.contains("at launch: leave threads to NCCL"));
    let document = dir.run(&format!("{} --json", words("wild.safetensors"))).json();
    let asked: Vec<_> =
        document["answers"].as_array().unwrap().iter().map(|a| &a["knobs"]["threads"]).collect();
    let said = dir.run(&words("wild.safetensors")).stdout;
    match document["launch"]["threads"].as_u64() {
        None => assert!(said.contains("leave threads to NCCL")),
        Some(threads) => {
            assert!(asked.contains(&&threads.into()) && number(&document["launch"]["speedup"]) > 1.0);
            assert!(said.contains(&format!(
                "DYNAMICCL_NTHREADS={threads}, or in the deployment file [launch] threads = {threads}"
            )));
        }
    }
}

#[test]
fn what_cannot_decide_is_refused_with_its_place() {
    let dir = Dir::new();
    dir.write("table.csv", TABLE);
    dir.write("broken.csv", "allreduce,0,65536,treee,ll,2,-1,-1\n");
    dir.write("empty.csv", "");
    dir.write("short.safetensors", "x");
    for (words, said) in [
        ("--policy missing.csv --cluster dgx_a100 --nodes 2", "missing.csv: cannot be read"),
        ("--policy broken.csv --cluster dgx_a100 --nodes 2", "broken.csv"),
        ("--policy empty.csv --cluster dgx_a100 --nodes 2", "empty.csv: no rule in it, so no table"),
        ("--policy short.safetensors --cluster dgx_a100 --nodes 2", "short.safetensors"),
        ("--policy table.csv --cluster dgx_a100 --nodes 2 --bytes 0", "--bytes 0: there is nothing to send"),
        ("--policy table.csv --cluster dgx_a10 --nodes 2", "did you mean"),
    ] {
        let refused = dir.run(&format!("decide {words}"));
        assert_eq!(refused.code, 2, "{words}");
        assert!(refused.stderr.contains(said), "{words}: {}", refused.stderr);
    }
}

/// Some editors begin a text with a mark of its encoding.
#[test]
fn a_mark_at_the_beginning_of_a_table_changes_nothing() {
    let dir = Dir::new();
    dir.write("table.csv", &format!("\u{feff}{TABLE}"));
    let words =
        "decide --policy table.csv --cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1K --json";
    let document = dir.run(words).json();
    assert_eq!(document["answers"][0]["reason"], "policy");
}

#[test]
fn the_shipped_policy_has_a_name() {
    let dir = Dir::new();
    let words = "--cluster dgx_a100 --nodes 2 --collective allreduce --bytes 1M";
    let [named, usual] = ["--policy shipped", ""].map(|policy| dir.run(&format!("decide {policy} {words}")));
    assert_eq!((named.code, named.stdout), (0, usual.stdout));
}
