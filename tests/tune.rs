//! `tune`: its document, its files, going on after an interruption, and what it refuses.

use dynamiccl_policies::nccl_csv::{Channels, Rule, Table};
use serde_json::Value;

use crate::util::{Dir, close, fields, number, repository};

const CALL: &str = "--cluster dgx_a100 --nodes 2 --collective allreduce --bytes 16M";
const ALL: &str = "tune --method tpe --cluster dgx_a100 --nodes 1 --budget 5";

#[test]
fn the_document_has_every_field_of_the_contract() {
    let document = Dir::new().run(&format!("tune --method mraco {CALL} --json")).json();
    let expected = "best best_us budget calls cluster command constants gain grid_best_us grid_trials method \
                    nodes noise quality ranks schema search_us_per_trial seed simulated space trials world";
    assert_eq!(fields(&document).join(" "), expected.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!((&document["method"], &document["space"]), (&"mraco".into(), &"tuccl".into()));
    assert_eq!((&document["grid_trials"], &document["budget"]), (&3600.into(), &Value::Null));
    let [quality, best, grid_best] = ["quality", "best_us", "grid_best_us"].map(|f| number(&document[f]));
    assert!((0.97..=1.0).contains(&quality) && close(quality, grid_best / best), "{document}");
    assert!(number(&document["trials"]) <= 360.0);
    assert_eq!(document["best"], document["calls"][0]["best"]);
}

#[test]
fn every_method_finds_something_no_slower_than_where_it_began() {
    for method in ["grid", "random", "mraco", "tpe", "coordinate", "bandit", "epsilon", "bayes"] {
        let document = Dir::new().run(&format!("tune --method {method} {CALL} --noise 0 --json")).json();
        let gain = number(&document["gain"]);
        assert!(gain >= 1.0 && number(&document["quality"]) > 0.8, "{method}: {document}");
        assert_eq!(number(&document["trials"]) == 0.0, method == "bayes");
        if method == "grid" {
            assert_eq!(
                (number(&document["quality"]), &document["trials"]),
                (1.0, &document["grid_trials"].as_f64().into())
            );
        }
    }
}

#[test]
fn a_seed_replays_a_search() {
    let found = |seed: u64| {
        let document =
            Dir::new().run(&format!("tune --method random {CALL} --budget 9 --seed {seed} --json")).json();
        (document["best"].clone(), document["trials"].clone())
    };
    assert_eq!(found(1), found(1));
    assert!((2..6).any(|seed| found(seed).0 != found(1).0));
}

#[test]
fn the_table_covers_every_size_with_explicit_channels() {
    let dir = Dir::new();
    let said = dir.run(&format!("{ALL} --out table.csv"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    let text = std::fs::read_to_string(dir.path("table.csv")).unwrap();
    let table = Table::parse(&text).unwrap();
    let rules: Vec<&Rule> = table.rules().collect();
    assert_eq!(rules.len(), 5 * 11);
    assert!(rules.iter().all(|rule| matches!(rule.channels, Channels::Exactly(1..))), "{text}");
    assert!(rules.iter().all(|rule| (rule.nodes, rule.ranks) == (Some(1), Some(8))));
    for of_kind in rules.chunks(11) {
        assert_eq!((of_kind[0].min_bytes, of_kind[10].max_bytes), (0, Rule::OPEN));
        assert!(of_kind.windows(2).all(|two| two[0].max_bytes + 1 == two[1].min_bytes), "{text}");
    }
}

#[test]
fn one_size_is_no_rule_for_others() {
    let dir = Dir::new();
    let words = "tune --method random --budget 3 --cluster dgx_a100 --nodes 1 --bytes 16M --out table.csv";
    assert_eq!(dir.run(words).code, 0);
    let table = Table::parse(&std::fs::read_to_string(dir.path("table.csv")).unwrap()).unwrap();
    let ranges: Vec<[u64; 2]> = table.rules().map(|rule| [rule.min_bytes, rule.max_bytes]).collect();
    assert_eq!(ranges, [[16 << 20; 2]; 5]);
}

#[test]
fn a_run_that_goes_on_ends_where_an_unbroken_one_does() {
    let dir = Dir::new();
    dir.run(&format!("{ALL} --out whole.json"));
    let whole = std::fs::read_to_string(dir.path("whole.json")).unwrap();
    // What a run leaves that was interrupted in its third call.
    let mut part: Value = serde_json::from_str(&whole).unwrap();
    let calls = part["calls"].as_array_mut().unwrap();
    assert_eq!(calls.len(), 55);
    calls.truncate(3);
    calls[2]["complete"] = false.into();
    calls[2]["trials"] = 1.into();
    dir.write("part.json", &part.to_string());
    let said = dir.run(&format!("{ALL} --out part.json --resume"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    let again: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path("part.json")).unwrap()).unwrap();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let calls = |file: &Value| file["calls"].as_array().unwrap().clone();
    assert_eq!(calls(&again).len(), 55);
    for (again, whole) in calls(&again).iter().zip(&calls(&whole)) {
        for field in ["collective", "bytes", "complete", "trials", "best"] {
            assert_eq!(again[field], whole[field], "{again}");
        }
        assert!(close(number(&again["best_us"]), number(&whole["best_us"])));
    }
    dir.run(&format!("{ALL} --seed 2 --out part.json --resume")).assert_error(
        "error: part.json is of another search: seed is 1 there and 2 here; give the words and files that it was made \
         with, or leave --resume out",
    );
}

#[test]
fn going_on_with_fewer_words_keeps_the_other_calls() {
    let dir = Dir::new();
    let words = "tune --method random --budget 3 --cluster dgx_a100 --nodes 1 --out n.json --resume";
    for (more, calls) in [("--bytes 1M", 5), ("--bytes 4M", 10), ("--bytes 1M --collective reduce", 10)] {
        assert_eq!(dir.run(&format!("{words} {more}")).code, 0);
        let file: Value =
            serde_json::from_str(&std::fs::read_to_string(dir.path("n.json")).unwrap()).unwrap();
        assert_eq!(file["calls"].as_array().unwrap().len(), calls, "{more}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_the_search() {
    let dir = Dir::new();
    for (words, expected) in [
        ("--out best.txt", "error: --out best.txt: end it in .csv (NVIDIA's table) or .json (lookup file)"),
        ("--noise 2", "error: --noise 2: give a spread from 0 (exact) to 1"),
        (
            "--space tuccl --out t.csv",
            "error: --out t.csv: NVIDIA's table has no threads and buffers, which --space tuccl searches; end it in .json, or give --space own",
        ),
        ("--out t.csv --resume", "error: --resume: t.csv cannot be read back; end --out in .json"),
    ] {
        dir.run(&format!("tune --method tpe {CALL} {words}")).assert_error(expected);
    }
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn a_surface_holds_the_time_of_every_setting() {
    let dir = Dir::new();
    let words = format!("tune --method coordinate {CALL} --space tuccl --surface s.json --json");
    let document = dir.run(&words).json();
    let surface: Value = serde_json::from_str(&std::fs::read_to_string(dir.path("s.json")).unwrap()).unwrap();
    let times: Vec<f64> = surface["time_us"].as_array().unwrap().iter().map(number).collect();
    let sizes: Vec<u64> =
        surface["dimensions"].as_array().unwrap().iter().map(|d| d["values"].as_u64().unwrap()).collect();
    assert_eq!((times.len(), sizes), (3600, vec![3, 4, 20, 15]));
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(least, number(&document["grid_best_us"]));
    let start = surface["start"].as_array().unwrap().iter().zip([3, 4, 20, 15]);
    let index = start.fold(0, |index, (value, values)| index * values + value.as_u64().unwrap());
    assert_eq!(times[index as usize], number(&document["calls"][0]["start_us"]));
}

/// The name of a file says nothing about what is in it.
#[test]
fn results_of_another_machine_are_not_gone_on_with() {
    let dir = Dir::new();
    let cluster = repository("env/clusters/dgx_a100.toml");
    dir.write("mine.toml", &cluster);
    let words = "tune --method random --budget 3 --cluster mine.toml --nodes 2 --bytes 1M --out found.json";
    assert_eq!(dir.run(words).code, 0);
    let found = std::fs::read_to_string(dir.path("found.json")).unwrap();
    assert_eq!(dir.run(&format!("{words} --resume")).code, 0);
    let mut other = dynamiccl_env::cluster::Cluster::from_toml("mine.toml", &cluster).unwrap();
    other.calibration.launch *= 2.0;
    dir.write("mine.toml", &other.to_toml().unwrap());
    let said = dir.run(&format!("{words} --resume"));
    assert_eq!(said.code, 2, "{}", said.stdout);
    let line = "error: found.json is of another search: cluster_hash is \"";
    assert!(said.stderr.starts_with(line), "{}", said.stderr);
    // A file of an earlier release says nothing of it.
    let old: Vec<&str> = found.lines().filter(|line| !line.contains("_hash")).collect();
    assert_eq!(old.len() + 2, found.lines().count());
    dir.write("found.json", &old.join("\n"));
    let said = dir.run(&format!("{words} --resume"));
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn a_surface_is_written_also_where_everything_is_found() {
    let dir = Dir::new();
    let words = format!("tune --method random --budget 3 {CALL} --out found.json");
    assert_eq!(dir.run(&words).code, 0);
    let said = dir.run(&format!("{words} --resume --surface s.json"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(dir.names(), ["found.json", "s.json"]);
}
