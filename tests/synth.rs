//! `synth`: its document, its files, the proof of files, and what it refuses; `tune --joint` and its table.

use serde_json::Value;

use crate::util::{Dir, fields, number};

const CALL: &str = "--cluster aws_p4d --nodes 2 --ranks-per-node 4 --collective allgather --bytes 64M";

fn read(dir: &Dir, name: &str) -> String {
    std::fs::read_to_string(dir.path(name)).expect(name)
}

fn testbed(name: &str) -> String {
    crate::util::repository_path(&format!("env/synth/clusters/{name}.toml")).display().to_string()
}

#[test]
fn the_document_has_every_field_of_the_contract() {
    let document = Dir::new().run(&format!("synth {CALL} --sketch pair --json")).json();
    for field in [
        "schema",
        "time_us",
        "lower_bound_us",
        "nic_utilisation",
        "link_utilisation",
        "steps",
        "verified",
        "synthesis_ms",
        "search_ms",
    ] {
        assert!(fields(&document).contains(&field), "{field} in {document}");
    }
    assert_eq!((&document["verified"], &document["sketch"]), (&true.into(), &"pair".into()));
    assert!(number(&document["time_us"]) >= number(&document["lower_bound_us"]));
    assert!((0.0..=1.0).contains(&number(&document["nic_utilisation"])));
}

#[test]
fn the_published_figure_of_two_v100_nodes_can_be_typed() {
    let call = format!(
        "synth --cluster {} --nodes 2 --collective allgather --bytes 1G --json",
        testbed("tuccl_v100")
    );
    let time = |more: &str| number(&Dir::new().run(&format!("{call} {more}")).json()["time_us"]);
    let mesh = time("--sketch full --synthesizer greedy --assume conn --chunks 1 --channels 1");
    assert!((mesh / 172_400.0 - 1.0).abs() < 0.02, "{mesh}");
    let aware = time("--sketch auto");
    assert!((aware / 42_900.0 - 1.0).abs() < 0.05, "{aware}");
}

#[test]
fn a_schedule_is_written_proved_drawn_and_its_sketch_edited() {
    let dir = Dir::new();
    let said = dir.run(&format!(
        "synth {CALL} --sketch pair --chunks 1 --channels 2 --out ag.xml --picture ag.svg --sketch-out s.toml"
    ));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("proved"), "{}", said.stdout);
    let proof = dir.run("synth --verify ag.xml");
    assert_eq!((proof.code, proof.stdout.contains("Summary  proved")), (0, true), "{}", proof.stdout);
    assert!(roxmltree::Document::parse(&read(&dir, "ag.svg")).is_ok());
    let sketch = read(&dir, "s.toml");
    assert!(sketch.contains("mode = \"pair\"") && sketch.contains("remote = [4]"), "{sketch}");
    let again = dir.run(&format!("synth {CALL} --sketch-file s.toml --chunks 1 --json")).json();
    assert_eq!(again["sketch"], "s.toml");
    dir.write("s.toml", &sketch.replacen("remote = [4]", "remote = [1]", 1));
    let refused = dir.run(&format!("synth {CALL} --sketch-file s.toml"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("rank 0: remote names 1"), "{}", refused.stderr);
}

#[test]
fn a_broken_file_ends_with_one_and_says_rule_rank_and_step() {
    let dir = Dir::new();
    dir.run(&format!("synth {CALL} --sketch pair --chunks 1 --channels 1 --out ag.xml"));
    let right = read(&dir, "ag.xml");
    dir.write("bad.xml", &right.replacen("srcoff=\"0\"", "srcoff=\"1\"", 1));
    let said = dir.run("synth --verify bad.xml");
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("broken at rank"), "{}", said.stdout);
    let document: Value = serde_json::from_str(&dir.run("synth --verify bad.xml --json").stdout).unwrap();
    assert_eq!(document["verified"], false);
    assert!(
        document["violation"]["rank"].is_number() && document["violation"]["step"].is_number(),
        "{document}"
    );
    dir.write("none.xml", "<algo/>");
    assert_eq!(dir.run("synth --verify none.xml").code, 2);
    dir.run("synth --verify nowhere.xml").assert_error(
        "error: --verify nowhere.xml: No such file or directory (os error 2); name an MSCCL file, such as synth --out writes",
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let refused = |words: &str, part: &str| {
        let said = Dir::new().run(words);
        assert_eq!(said.code, 2, "{words}: {}", said.stdout);
        assert!(said.stderr.contains(part), "{words}: {}", said.stderr);
    };
    refused("synth --cluster dgx_a100 --nodes 2 --collective allgather", "--bytes");
    refused(&format!("synth {CALL} --sketch-file no.toml"), "no.toml");
    refused(&format!("synth {CALL} --synthesizer gready"), "did you mean \"greedy\"");
    refused(&format!("synth {CALL} --network-channel 0"), "--network-channel");
    refused(&format!("synth {CALL} --out no/such.xml"), "no/such.xml");
    refused("synth --cluster gb200_nvl72 --nodes 2 --collective allgather --bytes 1M", "give 1 node");
    refused("tune --joint --method tpe --cluster dgx_a100 --nodes 2", "--method mraco");
    refused("tune --joint --cluster dgx_a100 --nodes 2 --out t.csv", ".json");
    refused("tune --cluster dgx_a100 --nodes 2", "--method");
}

#[test]
fn a_joint_search_writes_a_table_with_its_checksum() {
    let dir = Dir::new();
    let document = dir.run(&format!("tune --joint {CALL} --budget 20 --out t.json --json")).json();
    assert_eq!((&document["joint"], &document["method"]), (&true.into(), &"mraco".into()));
    let table: Value = serde_json::from_str(&read(&dir, "t.json")).unwrap();
    assert_eq!((&table["checksum"], &table["topology"]), (&document["checksum"], &document["topology"]));
    // The table has what the search believes, the document what is true.
    let [believed, truth] = [&table["entries"][0]["micros"], &document["calls"][0]["best_us"]].map(number);
    assert!((believed / truth).ln().abs() < 0.05, "{believed} {truth}");
    assert!(number(&document["calls"][0]["gain"]) >= 1.0);
    assert!(number(&document["trials"]) <= 20.0);
}

#[test]
fn ctrl_c_ends_the_search_and_leaves_nothing() {
    let dir = Dir::new();
    let words = "synth --cluster dgx_h100 --nodes 32 --collective allreduce --bytes 64M";
    dir.interrupt(&format!("{words} --sketch-out s.toml --picture p.svg"));
    assert!(dir.names().is_empty(), "{:?}", dir.names());
    assert_eq!(dir.interrupt(&format!("{words} --json")), "interrupted\n");
}
