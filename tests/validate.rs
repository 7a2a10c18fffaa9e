//! `validate`: its two documents, any rank count and rate, and its verdict.

use serde_json::{Value, json};

use crate::util::{Dir, close, fields, number, repository};

fn dir() -> Dir {
    let dir = Dir::new();
    dir.borrow("tests/data/sweeps", "sweeps");
    dir.borrow("tests/data/tables", "tables");
    dir
}

/// The figures of sweeps; `nccl` says whether NCCL's default was measured.
fn assert_figures(figures: &Value, cells: u64, nccl: bool) {
    assert_eq!(figures["cells"], cells);
    assert!(number(&figures["median_abs_log_error"]) >= 0.0);
    assert!(number(&figures["decision_fidelity"]) >= 1.0);
    assert_eq!(figures["nccl_decision"].is_f64(), nccl, "{figures}");
}

#[test]
fn sweeps_of_any_ranks_and_rate_are_judged() {
    let document = dir().run("validate --sweeps sweeps --json").json();
    assert_eq!(fields(&document), ["command", "constants", "overall", "schema", "seed", "sweeps"]);
    assert_eq!((&document["command"], &document["constants"]), (&"validate".into(), &"full".into()));
    let sweeps = document["sweeps"].as_array().unwrap();
    let expected = [
        ("10gbit_4ranks.csv", 4, "10gbit", 2, true),
        ("made_up.csv", 3, "loopback", 2, false),
        ("made_up.csv", 6, "5gbit", 2, true),
    ];
    assert_eq!(sweeps.len(), expected.len());
    for (sweep, (file, ranks, link, cells, nccl)) in sweeps.iter().zip(expected) {
        let names = "cells decision_fidelity file link median_abs_log_error nccl_decision ranks";
        assert_eq!(fields(sweep).join(" "), names);
        assert_eq!(
            [&sweep["file"], &sweep["ranks"], &sweep["link"]],
            [&json!(file), &json!(ranks), &json!(link)]
        );
        assert_figures(sweep, cells, nccl);
    }
    assert_figures(&document["overall"], 6, true);
}

/// A chunk size that NCCL asks nobody about was not what ran, and a release that is not reproduced is named.
#[test]
fn what_a_sweep_does_not_say_is_told() {
    let (dir, sweep) = (Dir::new(), repository("tests/data/sweeps/made_up.csv"));
    dir.write("old.csv", &sweep);
    let plain = dir.run("validate --sweeps old.csv --json").stdout;
    let mut lines = sweep.lines().map(|line| format!("{line},"));
    let mut chunks = lines.next().unwrap() + "chunk\n";
    for line in lines {
        let asked = !line.contains(",default,default,");
        let half = if asked { format!("{line}half\n") } else { String::new() };
        chunks += &format!("{line}\n{half}");
    }
    dir.write("old.csv", &chunks);
    let old = dir.run("validate --sweeps old.csv --json");
    assert_eq!(old.stdout, plain);
    assert!(old.stderr.contains("old.csv: left out "), "{}", old.stderr);
    assert!(old.stderr.contains("NCCL 2.28 lets no tuner set the chunk size"), "{}", old.stderr);
    dir.write("old.csv.about.json", r#"{"nccl": "2.31.1"}"#);
    let new = dir.run("validate --sweeps old.csv");
    let note = "old.csv: NCCL 2.31 is not reproduced; its choices are taken to be those of 2.30\n";
    assert!(new.stderr.contains(note) && !new.stderr.contains("left out"), "{}", new.stderr);
    dir.write("old.csv.about.json", r#"{"nccl": "2.30.7", "mps": false}"#);
    let unusual = dir.run("validate --sweeps old.csv");
    let note = "old.csv: measured with no MPS: it says nothing of ranks without\n";
    assert!(unusual.stderr.contains(note), "{}", unusual.stderr);
}

#[test]
fn one_sweep_can_be_given_as_a_file() {
    let document = dir().run("validate --sweeps sweeps/made_up.csv --constants blind --json").json();
    assert_eq!((document["sweeps"].as_array().unwrap().len(), &document["constants"]), (2, &"blind".into()));
}

#[test]
fn tables_are_judged_by_the_health_of_their_machines() {
    let document = dir().run("validate --tables tables --json").json();
    let names = "command constants other overall schema seed skipped tables";
    assert_eq!(fields(&document).join(" "), names);
    let tables = document["tables"].as_array().unwrap();
    let judged: Vec<_> =
        tables.iter().map(|t| (t["health"].as_str().unwrap(), t["rows"].as_u64().unwrap())).collect();
    assert_eq!(judged, [("yes", 8), ("yes", 12), ("unknown", 10), ("partly", 15), ("no", 10)]);
    for table in tables {
        assert_eq!(fields(table).join(" "), "calibrated health nccl rows table_id zero_shot");
        for error in ["nccl", "zero_shot", "calibrated"] {
            assert!(number(&table[error]) >= 0.0, "{table}");
        }
    }
    let overall = &document["overall"];
    assert_eq!(
        (fields(overall).join(" "), &overall["tables"]),
        ("calibrated nccl tables zero_shot".into(), &2.into())
    );
    let healthy = [&tables[0], &tables[1]].map(|table| number(&table["zero_shot"]));
    assert!(close(number(&overall["zero_shot"]), (healthy[0] + healthy[1]) / 2.0), "medians of the healthy");
    let others: Vec<_> =
        document["other"].as_array().unwrap().iter().map(|o| (&o["health"], &o["tables"])).collect();
    let one = json!(1);
    assert_eq!(others, [(&"unknown".into(), &one), (&"partly".into(), &one), (&"no".into(), &one)]);
    let skipped = json!([
        {"table_id": "xxrjun_h100_N1_G8_n002_alltoall", "why": "no row that NCCL's tuner decides"},
        {"table_id": "coreweave_h100_64gpu_sharp_allreduce", "why": "the number of nodes is not stated"},
    ]);
    assert_eq!(document["skipped"], skipped);
}

#[test]
fn the_texts_have_a_row_per_source_and_a_verdict() {
    let dir = dir();
    insta::assert_snapshot!(dir.run("validate --sweeps sweeps").shape(), @r"
    # dynamiccl 0.1.0 validate, seed N
    # the model (constants full) against measured sweeps; a cell is collective × size
    # error: median over settings; model, nccl: measured time of the choice over the best
    #
    # sweep ranks link cells error model nccl
    # (|ln|) (÷ best) (÷ best)
    10gbit_4ranks.csv N 10gbit N N N N
    made_up.csv N 5gbit N N N N
    made_up.csv N loopback N N N -
    overall N N N N
    Summary the model's first choice takes N times the best measured in N cells; NCCL's own takes N
    ");
    insta::assert_snapshot!(dir.run("validate --tables tables").shape(), @r"
    # dynamiccl 0.1.0 validate, seed N
    # the model (constants full) against measured tables; medians over tables of
    # the median |ln(forecast ÷ measured)|; calibrated: judged on sizes that were not fitted
    #
    # source healthy tables nccl zero-shot calibrated
    # (|ln|) (|ln|) (|ln|)
    alcf no N N N N
    alps partly N N N N
    apart no N N N N
    apart partly N N N N
    apart unknown N N N N
    aws yes N N N N
    issue232 unknown N N N N
    oci yes N N N N
    overall yes N N N N
    # N table skipped: no row that NCCL's tuner decides
    # N table skipped: the number of nodes is not stated
    Summary on N healthy tables the model is off by N %, calibrated by N %; NCCL's own formula by N %
    ");
}

#[test]
fn a_bound_makes_the_verdict() {
    let dir = dir();
    for (bound, code) in [("1000", 0), ("0.5", 1)] {
        let said = dir.run(&format!("validate --sweeps sweeps --fail-above {bound}"));
        assert_eq!((said.code, said.stderr.as_str()), (code, ""), "{bound}");
        assert!(said.stdout.contains("Summary"), "the report comes in any case");
    }
    assert_eq!(dir.run("validate --tables tables --fail-above 0").code, 1);
    dir.run("validate --tables tables --fail-above nan")
        .assert_error("error: invalid value 'nan' for '--fail-above <X>': give a finite number, like 0.5");
}

#[test]
fn skipped_tables_are_told_with_v() {
    let said = dir().run("validate --tables tables -v");
    let line = "coreweave_h100_64gpu_sharp_allreduce skipped: the number of nodes is not stated";
    assert!(said.stderr.lines().any(|l| l == line), "{}", said.stderr);
}

#[test]
fn measurements_that_cannot_be_read_are_refused_with_their_place() {
    let dir = Dir::new();
    let missing = "\"No such file or directory (os error 2)\"; check the path";
    dir.run("validate --sweeps here").assert_error(&format!("error: here: cannot be read: {missing}"));
    dir.run("validate --tables here")
        .assert_error(&format!("error: here/tables.csv: cannot be read: {missing}"));

    std::fs::create_dir(dir.path("empty")).unwrap();
    dir.run("validate --sweeps empty").assert_error(
        "error: empty: holds no measurements: \"no .csv file\"; give a folder with at least one .csv file of a sweep",
    );

    let sweep = repository("tests/data/sweeps/made_up.csv");
    dir.write("bad.csv", &sweep.replace("6,5gbit", "6,fast"));
    dir.run("validate --sweeps bad.csv").assert_error(
        "error: bad.csv:6: bad link \"fast\"; \"fast\" is not a rate; write it like 25gbit, 500mbit or 12.5GB/s",
    );
    dir.write("alone.csv", &sweep.replace("6,5gbit", "1,5gbit"));
    dir.run("validate --sweeps alone.csv").assert_error(
        "error: alone.csv: cluster h200_shared: 1 rank: give at least 2 ranks, one has nobody to talk to",
    );
    dir.write("node.csv", &sweep);
    dir.write("node.csv.about.json", r#"{"shared": false}"#);
    dir.run("validate --sweeps node.csv").assert_error(
        "error: node.csv: its ranks had a GPU each, and sweeps of ranks that share one are compared here; leave it out, or \
         judge it with `dynamiccl eval --workload node.csv --clusters NAME`",
    );
}
