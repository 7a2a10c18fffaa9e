//! `export`.

use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::nccl_csv::{Channels, Rule, Table};

use crate::util::{Dir, number};

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
    assert!(read.about.training.curriculum.ends_with("and history job.jsonl"), "{:?}", read.about.training);
    assert_eq!(document["hash"], format!("{:016x}", read.hash()));
    assert_ne!(document["hash"], document["source_hash"]);
    // Its parent is what was read, whatever else is changed with it.
    dir.run(&format!("{words} --margin 0.5")).json();
    let read = Frozen::open(&dir.path("b.safetensors")).unwrap();
    assert_eq!((read.about.margin, read.about.training.parent), (0.5, Some(frozen.hash())));
}

#[test]
fn what_does_not_go_together_is_refused_and_nothing_is_written() {
    let dir = Dir::new();
    dir.write_policy("tiny.safetensors");
    dir.run(TABLE)
        .assert_error("error: --format nccl-csv: give --cluster and --nodes, a table is for one machine");
    dir.run("export --policy tiny.safetensors --out b.safetensors --nodes 2").assert_error(
        "error: a policy is for every machine; --cluster and --nodes go with --format nccl-csv or \
         --calibrate-guard",
    );
    dir.write("text.safetensors", "no policy");
    let said = dir.run("export --policy text.safetensors --out b.safetensors");
    assert!(said.stderr.starts_with("error: text.safetensors: 9 bytes are too few"), "{}", said.stderr);
    let said = dir.run(&format!("{TABLE} --nodes 2 --ranks-per-node 9"));
    assert!(said.stderr.contains("give 1 to 8"), "{}", said.stderr);
    dir.borrow("policies/frozen/wan.safetensors", "wan.safetensors");
    let table = TABLE.replace("tiny", "wan");
    for words in [
        &format!("{table} --nodes 2"),
        "export --policy wan.safetensors --calibrate-guard --out b.safetensors",
    ] {
        let said = dir.run(words);
        assert!(said.code == 2 && said.stderr.starts_with("error: wan.safetensors: "), "{}", said.stderr);
    }
    assert_eq!(dir.names(), ["text.safetensors", "tiny.safetensors", "wan.safetensors"]);
}

/// A policy that throws dice is held back as far as margins go, one that is NCCL keeps its own.
#[test]
fn a_margin_is_chosen_by_what_it_would_cost() {
    let dir = Dir::new();
    let wild = dir.write_wild_policy("wild.safetensors");
    let tiny = dir.write_policy("tiny.safetensors");
    let words = "--calibrate-guard --cluster dgx_a100 --nodes 2 --worlds 1 --json";
    let document = dir.run(&format!("export --policy wild.safetensors --out a.safetensors {words}")).json();
    let guard = &document["guard"];
    let margins = guard["margins"].as_array().unwrap();
    assert_eq!((margins.len(), number(&guard["from"]) as f32), (12, 0.3));
    let figure = |name: &str| margins.iter().map(|tried| number(&tried[name])).collect::<Vec<_>>();
    let left = figure("fallback_share");
    assert!(figure("margin").is_sorted() && left.iter().any(|share| *share != left[0]), "{guard}");
    let written = Frozen::open(&dir.path("a.safetensors")).unwrap();
    assert_eq!(written.about.margin, number(&guard["margin"]) as f32);
    assert_ne!(written.about.margin, wild.about.margin, "{guard}");
    assert_eq!((written.weights, written.about.training.parent), (wild.weights.clone(), Some(wild.hash())));
    let at = figure("margin").iter().position(|&margin| margin == number(&guard["margin"])).unwrap();
    let worst = figure("worst_cell").into_iter().fold(0.0, f64::max);
    assert_eq!(guard["safe"].as_bool().unwrap(), worst >= 0.98);
    assert!(figure("worst_cell")[at] >= worst.min(0.98), "{guard}");

    dir.run(&format!("export --policy tiny.safetensors --out b.safetensors {words}")).json();
    assert_eq!(std::fs::read(dir.path("b.safetensors")).unwrap(), tiny.to_bytes());
}

/// Whoever reads a file goes by its name.
#[test]
fn a_file_that_would_not_be_known_by_its_name_is_refused() {
    let dir = Dir::new();
    dir.write_policy("tiny.safetensors");
    let export = "export --policy tiny.safetensors --out";
    dir.run(&format!("{export} careful.csv --margin 0"))
        .assert_error("error: --out careful.csv: a policy ends in .safetensors");
    dir.run(&format!("{export} t.safetensors --format nccl-csv --cluster dgx_h100 --nodes 2"))
        .assert_error("error: --out t.safetensors: NVIDIA's table ends in .csv or .conf");
    assert_eq!(dir.names(), ["tiny.safetensors"]);
}

#[test]
fn a_margin_that_is_named_is_the_policys() {
    let dir = Dir::new();
    let tiny = dir.write_policy("tiny.safetensors");
    let export = |out: &str, margin: &str| {
        dir.run(&format!("export --policy tiny.safetensors --out {out} --margin {margin}"))
    };
    assert_eq!(export("a.safetensors", "-0.5").code, 0);
    let written = Frozen::open(&dir.path("a.safetensors")).unwrap();
    assert_eq!((written.about.margin, written.about.training.parent), (-0.5, Some(tiny.hash())));
    assert_eq!(written.weights, tiny.weights);
    assert_eq!(export("b.safetensors", &tiny.about.margin.to_string()).code, 0);
    assert_eq!(std::fs::read(dir.path("b.safetensors")).unwrap(), tiny.to_bytes());
    for bad in ["nan", "much", "1 --calibrate-guard"] {
        let refused = export("c.safetensors", bad);
        assert!(refused.code == 2 && refused.stderr.contains("--margin"), "{bad}: {}", refused.stderr);
    }
    assert!(!dir.path("c.safetensors").exists());
}

/// The document of `eval` becomes the manifest of what it judged.
#[test]
fn results_are_written_into_the_policy() {
    let dir = Dir::new();
    dir.write_policy("tiny.safetensors");
    let eval = "eval --policy tiny.safetensors --against nccl --clusters dgx_a100,tcp10g_1gpu --nodes 2";
    let judged = dir.run(&format!("{eval} --worlds 1 --seeds 1 --json"));
    dir.write("judged.json", &judged.stdout);
    let said = dir.run("export --policy tiny.safetensors --out c.safetensors --results judged.json");
    assert_eq!(said.code, 0, "{}", said.stderr);
    let results = Frozen::open(&dir.path("c.safetensors")).unwrap().about.results;
    let regret = number(&judged.json()["tuners"][0]["tiers"][0]["regret"]);
    assert!(results.contains(&("regret.tier2".to_owned(), regret)), "{results:?}");
    assert_eq!(results.len(), 3 * 4);
    let refused = dir.run("export --policy tiny.safetensors --out d.safetensors --results tiny.safetensors");
    assert!(refused.code == 2 && !dir.path("d.safetensors").exists(), "{}", refused.stderr);
    // With its results it is another policy, which nobody has judged.
    let refused = dir.run("export --policy c.safetensors --out d.safetensors --results judged.json");
    assert!(refused.code == 2 && refused.stderr.contains("judge this policy"), "{}", refused.stderr);
}

#[test]
fn the_shipped_policy_is_exported_inspected_and_asked_where_none_is_named() {
    let dir = Dir::new();
    assert_eq!(dir.run("export --out s.safetensors").code, 0);
    assert_eq!(Frozen::open(&dir.path("s.safetensors")).unwrap(), Frozen::shipped().unwrap());
    let (named, built_in) =
        (dir.run("inspect s.safetensors --json").json(), dir.run("inspect --json").json());
    assert_eq!((&named["policy"], &built_in["file"]), (&built_in["policy"], &"shipped".into()));
    let words = "--cluster dgx_a100 --nodes 1 --collective reduce --json";
    let [named, built_in] =
        ["--policy s.safetensors", ""].map(|policy| dir.run(&format!("decide {policy} {words}")).json());
    assert_eq!((&named["answers"], &built_in["file"]), (&built_in["answers"], &"shipped".into()));
}

#[test]
fn the_shipped_policy_has_a_name() {
    let dir = Dir::new();
    assert_eq!(dir.run("export --policy shipped --out named.safetensors").code, 0);
    assert_eq!(dir.run("export --out usual.safetensors").code, 0);
    let [named, usual] =
        ["named", "usual"].map(|name| std::fs::read(dir.path(&format!("{name}.safetensors"))));
    assert!(named.unwrap() == usual.unwrap());
}

#[test]
fn what_a_table_is_used_with_can_be_pasted() {
    let dir = Dir::new();
    dir.write_policy("tiny.safetensors");
    let said = dir.run(&format!("{} --nodes 1", TABLE.replace("t.conf", "t(1).conf")));
    assert!(said.stdout.ends_with("NCCL_TUNER_CONFIG_FILE='t(1).conf'\n"), "{}", said.stdout);
}
