//! `rails`: the paper's figures, its tables, the page, the errors.

use dynamiccl_policies::frozen::{About, Frozen, Training};
use dynamiccl_policies::network::Shape;
use dynamiccl_policies::probe;

use crate::util::{Dir, fields};

#[test]
fn the_document_has_the_papers_figures() {
    let document = Dir::new().run("rails --delay 100ms --json").json();
    let number = |field: &str| document[field].as_f64().expect(field);
    assert!((number("baseline_s") - 7.68).abs() < 0.08);
    assert!((number("on_demand") - 6.5).abs() < 0.3 && (number("provisioned") - 3.5).abs() < 0.3);
    assert!(number("learned") < number("provisioned"));
    assert_eq!(document["windows_ms"].as_array().map(Vec::len), Some(6));
    let names: Vec<_> = document["controllers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["on_demand", "provisioned", "static_split", "greedy", "hindsight", "learned"]);
    let alone = Dir::new().run("rails --policy none --json").json();
    assert!(alone["learned"].is_null());
    assert!(alone["notes"].to_string().contains("learned: no policy was asked for"), "{}", alone["notes"]);
}

/// The shipped policy in deep pipelines whose windows vary, on iterations that it has never met.
#[test]
fn the_shipped_policy_costs_less_than_whatever_needs_no_learning() {
    for job in ["--pp 4 --gflops 40000", "--pp 8 --gflops 30000", "--pp 16"] {
        let words =
            format!("rails --delay 100ms {job} --jitter 0.05 --surprise 0.1 --repetitions 2 --seed 77");
        let document = Dir::new().run(&format!("{words} --json")).json();
        let of = |name: &str| {
            let all = document["controllers"].as_array().unwrap();
            all.iter().find(|c| c["name"] == name).and_then(|c| c["increase"].as_f64()).unwrap()
        };
        assert!(of("provisioned") > 10.0, "{job}");
        let least = of("static_split").min(of("greedy"));
        assert!(of("learned") < 2.0 && of("learned") <= least, "{job}: {} {least}", of("learned"));
    }
}

#[test]
fn without_a_delay_nothing_takes_longer() {
    let document = Dir::new().run("rails --delay 0 --json").json();
    assert_eq!((document["on_demand"].as_f64(), document["provisioned"].as_f64()), (Some(0.0), Some(0.0)));
}

#[test]
fn the_same_seed_gives_the_same_document() {
    let words = "rails --pp 3 --jitter 0.05 --surprise 0.3 --iterations 2 --repetitions 2 --seed 4 --json";
    let dir = Dir::new();
    assert_eq!(dir.run(words).stdout, dir.run(words).stdout);
}

#[test]
fn tables_need_no_job() {
    let dir = Dir::new();
    let scales = dir.run("rails --table3 --json").json();
    let piezo = scales["technologies"].as_array().unwrap().iter().find(|t| t["name"] == "piezo").unwrap();
    assert_eq!((&piezo["gb200_gpus"], &piezo["h200_gpus"]), (&20_736.into(), &2304.into()));
    let bill = dir.run("rails --bom --servers 512 --json").json();
    let change = |kind: &str, of: &str| bill[kind][of].as_f64().unwrap();
    assert!((change("ideal", "cost_change") + 70.5).abs() < 0.05);
    assert!((change("ideal", "power_change") + 95.84).abs() < 0.05);
    assert!((change("real", "cost_change") + 52.0).abs() < 0.05);
    assert!(fields(&bill).contains(&"optical"));
}

#[test]
fn the_page_is_well_formed_and_says_what_it_is() {
    let dir = Dir::new();
    let said = dir.run("rails --technology liquid_crystal --pp 4 --html rails.html");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("provisioned"), "{}", said.stdout);
    let page = std::fs::read_to_string(dir.path("rails.html")).unwrap();
    let body = page.strip_prefix("<!DOCTYPE html>\n").expect("a page");
    let tree = roxmltree::Document::parse(body).unwrap();
    let drawings = tree.descendants().filter(|node| node.has_tag_name("svg")).count();
    assert!(drawings >= 3 && page.contains("no number here was measured"), "{drawings}");
}

/// A policy of random weights decides something legal, the same every time.
#[test]
fn a_policy_of_the_right_kind_is_judged_and_others_are_refused() {
    let dir = Dir::new();
    let training = Training { curriculum: "rails".to_owned(), ..Training::default() };
    let about = About { name: "wild".to_owned(), training, ..About::default() };
    let frozen = Frozen { weights: probe::weights(Shape::default(), 1), about };
    std::fs::write(dir.path("rails.safetensors"), frozen.to_bytes()).unwrap();
    let words = "rails --policy rails.safetensors --jitter 0.05 --surprise 0.2 --repetitions 2 --json";
    let document = dir.run(words).json();
    assert!(document["learned"].as_f64().is_some_and(|increase| increase > 0.0), "{document}");
    assert_eq!(document, dir.run(words).json());
    dir.write_policy("knobs.safetensors");
    dir.run("rails --policy knobs.safetensors").assert_error(
        "error: --policy knobs.safetensors: it was trained on \"\"; give a policy that was trained on \"rails\"",
    );
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let dir = Dir::new();
    for (words, expected) in [
        ("rails --delay 3m", "is not a time"),
        ("rails --technology pieso", "did you mean \"piezo\"?"),
        ("rails --model llama3_8", "did you mean \"llama3_8b\"?"),
        ("rails --jitter 0.9", "jitter = 0.9: give 0 to 0.5"),
        ("rails --pp 1", "--pp 1 --fsdp 2: circuits never change"),
        ("rails --servers 9", "--bom"),
        ("rails --policy none.safetensors", "none.safetensors"),
        ("rails --html no/such/page.html", "cannot write no/such/page.html"),
    ] {
        let said = dir.run(words);
        assert_eq!(said.code, 2, "{words}");
        assert!(said.stderr.contains(expected), "{words}: {}", said.stderr);
    }
}

#[test]
fn ctrl_c_ends_a_long_study() {
    Dir::new()
        .interrupt("rails --jitter 0.05 --surprise 0.1 --repetitions 100 --iterations 20 --pp 16 --fsdp 8");
}
