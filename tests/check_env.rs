//! `check-env`: a line per rule, its document, its errors.

use dynamiccl_env::gym::check::Rule;

use crate::util::{Dir, fields, repository};

#[test]
fn an_environment_that_keeps_the_contract_gets_a_tick_per_rule() {
    let said = Dir::new().run("check-env sim --steps 2000");
    assert_eq!(said.code, 0, "{}", said.stderr);
    let ticks: Vec<_> = said.stdout.lines().filter_map(|line| line.strip_prefix("✓  ")).collect();
    let names: Vec<_> = ticks.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, Rule::ALL.map(Rule::name));
    assert!(said.stdout.ends_with("Summary  sim-v1 keeps the contract\n"), "{}", said.stdout);
}

#[test]
fn the_document_has_every_rule() {
    let document = Dir::new().run("check-env trace --steps 2000 --seed 5 --json").json();
    let expected = ["command", "curriculum", "env", "id", "ok", "rules", "schema", "seed", "steps", "trace"];
    assert_eq!(fields(&document), expected);
    assert_eq!((&document["ok"], &document["env"]), (&true.into(), &"trace".into()));
    let rules = document["rules"].as_array().expect("a list of rules");
    assert_eq!(rules.len(), Rule::ALL.len());
    assert!(rules.iter().all(|rule| rule["verdict"] == "kept"));
    assert!(document["steps"].as_u64().is_some_and(|steps| steps > 2000));
}

#[test]
fn the_command_page_explains_every_rule() {
    let page = repository("docs/commands.md");
    for rule in Rule::ALL {
        let line = format!("| `{}` | {} |", rule.name(), rule.meaning());
        assert!(page.contains(&line), "docs/commands.md lacks {line}");
    }
}

#[test]
fn what_the_plugin_recorded_is_an_environment() {
    let dir = Dir::new();
    dir.write_records("records", 60);
    let document = dir.run("check-env trace --trace records --cluster dgx_h100 --steps 500 --json").json();
    assert_eq!((&document["ok"], &document["trace"]), (&true.into(), &"records".into()));
}

#[test]
fn what_cannot_be_checked_is_an_error() {
    for (words, expected) in [
        ("check-env sim --steps 0", "'0' for '--steps <N>': give a whole number from 1 up"),
        ("check-env trace --trace none.jsonl", "none.jsonl"),
        ("check-env sim --curriculum stag1", "did you mean \"stage1\"?"),
        ("check-env simm", "sim"),
        ("check-env live --ranks 2 --share-gpu --curriculum smoke", "--curriculum goes with what is drawn"),
        ("check-env trace --sweep s.csv --curriculum smoke", "--curriculum goes with what is drawn"),
    ] {
        let said = Dir::new().run(words);
        assert_eq!(said.code, 2, "{words}");
        assert!(said.stderr.contains(expected), "{words}: {}", said.stderr);
    }
}

/// The shipped curricula, the row of stages included, and a recording of NCCL's inspector.
#[test]
fn every_curriculum_keeps_the_contract() {
    let dir = Dir::new();
    dir.borrow("env/tests/data/traces/inspector.jsonl", "inspector.jsonl");
    let curricula = dynamiccl_env::curriculum::Curriculum::names();
    let mut words: Vec<_> = curricula.map(|name| format!("sim --curriculum {name}")).collect();
    words.push("trace --trace inspector.jsonl --cluster dgx_h100".to_owned());
    for words in words {
        let said = dir.run(&format!("check-env {words} --steps 20000"));
        assert_eq!(said.code, 0, "{words}\n{}{}", said.stdout, said.stderr);
    }
}
