//! `eval`: its document, its table, its files, and what it refuses.

use serde_json::Value;

use crate::util::{Dir, fields, number, repository, repository_path, shape};

/// One machine at one tier, few worlds.
const SMALL: &str = "--clusters dgx_a100 --nodes 2 --worlds 1 --seeds 2";

fn words(against: &str) -> String {
    words_with("none", against)
}

fn words_with(policy: &str, against: &str) -> String {
    format!("eval --policy {policy} --against {against} {SMALL} --progress never")
}

fn tuner<'a>(document: &'a Value, name: &str) -> &'a Value {
    let tuners = document["tuners"].as_array().expect("tuners");
    tuners.iter().find(|tuner| tuner["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn the_document_has_every_field_of_the_contract() {
    let names = "nccl,oracle,bayes,coordinate,random,fixed:ring/simple";
    let document = Dir::new().run(&format!("{} --json", words(names))).json();
    let top = "command constants episodes hidden nccl_version notes policy same_call schema seed seeds simulated told tuners verdict \
               workload worlds";
    assert_eq!(fields(&document).join(" "), top);
    assert_eq!((&document["simulated"], &document["seeds"]), (&true.into(), &2.into()));
    let listed: Vec<_> = document["tuners"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(listed, names.split(',').collect::<Vec<_>>());
    let figures = "cells coverage cumulative cumulative_episodes distinct_knobs fallback_share paths regret regret_hold speedup \
                   speedup_std worst_at worst_cell";
    for tuner in document["tuners"].as_array().unwrap() {
        assert_eq!(fields(tuner).join(" "), "curves held_out kind name overall tiers");
        assert_eq!((&tuner["held_out"], &tuner["tiers"][0]["tier"]), (&Value::Null, &2.into()));
        assert_eq!(fields(&tuner["overall"]).join(" "), figures);
        assert_eq!(fields(&tuner["overall"]["cumulative"]), ["1000", "200", "50"]);
        assert_eq!(tuner["overall"]["speedup"], tuner["tiers"][0]["speedup"]);
        assert_eq!((&tuner["overall"]["cells"], tuner["curves"].as_array().unwrap().len()), (&55.into(), 55));
    }
    let speedup = |name| number(&tuner(&document, name)["overall"]["speedup"]);
    let regret = |name| number(&tuner(&document, name)["overall"]["regret"]);
    assert_eq!((speedup("nccl"), number(&tuner(&document, "nccl")["overall"]["worst_cell"])), (1.0, 1.0));
    assert_eq!(regret("oracle"), 0.0);
    assert!(names.split(',').all(|name| regret(name) >= 0.0 && speedup(name) <= speedup("oracle")));
    assert!(regret("bayes") <= regret("nccl") && regret("bayes") <= regret("fixed:ring/simple"));
    assert!(speedup("random") < 1.0);
}

/// A policy that was never trained does as NCCL does, and its estimates are NCCL's.
#[test]
fn an_untrained_policy_is_nccl() {
    let dir = Dir::new();
    let frozen = dir.write_policy("tiny.safetensors");
    let document = dir.run(&format!("{} --json", words_with("tiny.safetensors", "nccl,oracle"))).json();
    assert_eq!(document["policy"], format!("{:016x}", frozen.hash()));
    assert_eq!(document["tuners"][0]["name"], "tiny");
    let figures = &document["tuners"][0]["overall"];
    assert_eq!((number(&figures["speedup"]), number(&figures["cumulative"]["1000"])), (1.0, 1.0));
    assert!((0.0..=1.0).contains(&number(&figures["coverage"])));
    assert_eq!(figures["regret"], tuner(&document, "nccl")["overall"]["regret"]);
}

/// The text without where the worst cells are, which follows the constants.
fn placeless(text: &str) -> String {
    let row = |line: &str| match line.split_once(" on ") {
        Some((row, _)) if line.starts_with(' ') && !line.contains("NCCL") => {
            let words: Vec<_> = row.split_whitespace().collect();
            words[..words.len() - 2].join(" ")
        }
        Some((row, _)) if line.contains("worst cell") => row.split(" (simulated)").next().unwrap().to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(|line| row(line) + "\n").collect()
}

#[test]
fn the_table_reads_like_those_of_nccl_tests() {
    let said = Dir::new().run(&words("nccl,oracle"));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(shape(&placeless(&said.stdout)), @r"
    # dynamiccl 0.1.0 eval, seed N
    # simulated: cells, N seeds of N worlds, N episodes for each tuner
    # NCCL N
    # speedup: NCCL's own true time / the tuner's; regret: the tuner's / the oracle's - N, with
    # feedback after N calls, and held without; left: calls left to NCCL; N, N, N: time
    # / NCCL's since a job began, with the trials beside it, which are in no other column
    # a look, not a result: N seeds and N worlds in all, where a result has at least N and N
    #
    # tier tuner cells speedup ± regret hold worst left knobs N N N worst cell
    # (x) (%) (%) (x) (%)
    N nccl N N N N N N N N N N N
    N oracle N N N N N N N N N N N
    all nccl N N N N N N N N N N N
    all oracle N N N N N N N N N N N
    Summary nccl: N× NCCL over tier N
    oracle: N× NCCL over tier N
    ");
}

#[test]
fn files_hold_every_cell_and_the_table() {
    let dir = Dir::new();
    let said = dir.run(&format!("{} --csv cells.csv --markdown table.md -q", words("nccl,oracle,bayes")));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_eq!(dir.names(), ["cells.csv", "table.md"]);
    let csv = std::fs::read_to_string(dir.path("cells.csv")).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    assert_eq!(csv.lines().count(), 1 + 55 * 3);
    assert!(csv.contains("\ndgx_a100,2,2,false,allreduce,1048576,nccl,1.000000,"), "{csv}");
    let markdown = std::fs::read_to_string(dir.path("table.md")).unwrap();
    assert!(markdown.starts_with("simulated: cells, 2 seeds of 1 worlds"), "{markdown}");
    let rows: Vec<_> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.iter().all(|row| row.matches('|').count() == rows[0].matches('|').count()));
    assert_eq!(rows.len(), 2 + 2 * 3);
}

#[test]
fn a_verdict_can_fail() {
    let dir = Dir::new();
    let passed = dir.run(&format!("{} --fail-below 1.0 --json", words("oracle,nccl"))).json();
    assert_eq!((&passed["verdict"]["passed"], &passed["verdict"]["tuner"]), (&true.into(), &"oracle".into()));
    assert_eq!(passed["verdict"]["speedup"], tuner(&passed, "oracle")["overall"]["speedup"]);
    let failed = dir.run(&format!("{} --fail-below 9.5", words("oracle,nccl")));
    assert_eq!((failed.code, failed.stderr.as_str()), (1, ""));
    let last = failed.stdout.lines().last().unwrap();
    assert!(last.starts_with("Verdict  oracle 1.") && last.ends_with(" is below 9.5: no"), "{last}");
    for nothing in ["nan", "inf", "0", "-1", "x"] {
        let said = dir.run(&format!("{} --fail-below={nothing}", words("oracle")));
        assert_eq!(said.code, 2, "{nothing}");
        assert!(said.stderr.contains("a speed-up is a number above 0"), "{}", said.stderr);
    }
    let nccl = dir.run(&format!("{} --fail-below 1", words("nccl,oracle")));
    assert!(nccl.code == 2 && nccl.stderr.starts_with("error: --fail-below: the first tuner is nccl"));
}

/// What a search before the job takes is in the verdict, and what its table is worth in hold.
#[test]
fn a_search_beside_the_job_is_paid_for_in_the_verdict() {
    let dir = Dir::new();
    let said = dir.run(&words("nccl,mraco,mraco_online"));
    let verdicts: Vec<_> = said.stdout.lines().filter(|line| line.contains("(simulated)")).collect();
    assert!(verdicts.len() == 3 && verdicts.iter().all(|line| line.contains("; a job of 1000 calls takes ")));
    let document = dir.run(&format!("{} --json", words("nccl,mraco,mraco_online"))).json();
    let figure = |name, figure: &str| number(&tuner(&document, name)["overall"][figure]);
    assert!(figure("mraco", "regret_hold") < figure("nccl", "regret_hold"));
    assert_eq!(figure("mraco_online", "regret_hold"), figure("nccl", "regret_hold"));
    let whole = number(&tuner(&document, "mraco")["overall"]["cumulative"]["1000"]);
    assert!(
        verdicts[1].ends_with(&format!("a job of 1000 calls takes {whole:.3} times NCCL's (10 such jobs)")),
        "{verdicts:?}"
    );
}

#[test]
fn files_may_be_called_like_others() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("other")).unwrap();
    for file in ["oracle.csv", "one,two.csv", "one.csv", "other/one.csv", "a|b.csv"] {
        dir.write(file, "allreduce,0,4294967295,ring,ll,-1,-1,-1\n");
    }
    let words = words_with("oracle.csv", "oracle,one.csv,other/one.csv,a|b.csv");
    let words = format!("{words} --html p.html --csv c.csv --markdown m.md --json");
    let document = dir.run(&words).json();
    let named: Vec<_> =
        document["tuners"].as_array().unwrap().iter().map(|t| (&t["name"], &t["kind"])).collect();
    let names = ["oracle.csv", "oracle", "one.csv", "other/one.csv", "a|b"];
    assert_eq!(named.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    assert_eq!((named[0].1, named[1].1), (&"tuner".into(), &"oracle".into()));
    // A map of its own for every file; the key and curves of the oracle are the oracle's.
    let page = std::fs::read_to_string(dir.path("p.html")).unwrap();
    assert_eq!(page.matches(">oracle.csv</text>").count(), 5);
    assert_eq!(page.matches("curve t-oracle").count(), 5);
    let markdown = std::fs::read_to_string(dir.path("m.md")).unwrap();
    assert!(markdown.contains("| a\\|b |"), "{markdown}");
    let twice = dir.run(&words_with("one.csv", "one.csv"));
    assert!(twice.stderr.starts_with("error: --against one.csv: it is named twice"), "{}", twice.stderr);
}

/// A recorded job of as many iterations, with two communicators and a call that NCCL does not tune.
fn recording(iterations: usize) -> String {
    let example = repository("src/commands/check_env/example.jsonl");
    let header = example.lines().next().expect("a header");
    let iteration = "{\"comm\":\"tp\",\"coll\":\"allreduce\",\"bytes\":33554432}\n\
                     {\"comm\":\"pp\",\"coll\":\"sendrecv\",\"bytes\":33554432}\n\
                     {\"comm\":\"dp\",\"coll\":\"reducescatter\",\"bytes\":26214400}\n";
    format!("{header}\n{}", iteration.repeat(iterations))
}

#[test]
fn jobs_are_judged_too() {
    let dir = Dir::new();
    let drawn = "eval --policy none --against nccl,oracle --workload smoke --worlds 1 --seeds 1 --tiers 0,1,2,3,4 --json";
    let recorded =
        "eval --policy none --against nccl,oracle --workload job.jsonl --worlds 1 --seeds 1 --json";
    dir.write("job.jsonl", &recording(60));
    for words in [drawn, recorded] {
        let document = dir.run(words).json();
        let name = words.split_whitespace().nth(6).unwrap();
        assert_eq!((&document["workload"], &document["episodes"]), (&name.into(), &1.into()));
        assert_eq!(number(&tuner(&document, "nccl")["overall"]["speedup"]), 1.0);
        assert_eq!(number(&tuner(&document, "oracle")["overall"]["regret"]), 0.0);
    }
}

/// A recording of one communicator: calls of these collectives, one after the other.
fn calls(collectives: &[&str]) -> String {
    let header = "{\"schema\":\"dynamiccl-trace-1\",\"cluster\":\"dgx_a100\",\"nodes\":2,\
                  \"communicators\":[{\"id\":\"dp\",\"ranks\":16,\"nodes\":2}]}";
    let line = |(at, coll): (usize, &&str)| {
        let bytes = if *coll == "sendrecv" { 1024 } else { 16_384_u64 << (2 * (at / 2 % 5)) };
        format!("{{\"comm\":\"dp\",\"coll\":\"{coll}\",\"bytes\":{bytes}}}\n")
    };
    format!("{header}\n{}", collectives.iter().enumerate().map(line).collect::<String>())
}

#[test]
fn a_recorded_job_is_judged_to_its_end() {
    let dir = Dir::new();
    dir.write("job.jsonl", &calls(&[["allreduce"; 300], ["allgather"; 300]].concat()));
    let words = "eval --policy none --against nccl --workload job.jsonl --worlds 1 --seeds 1 --csv cells.csv";
    assert_eq!(dir.run(words).code, 0);
    let cells = std::fs::read_to_string(dir.path("cells.csv")).unwrap();
    assert!(cells.contains("allreduce") && cells.contains("allgather"), "{cells}");
}

/// What became of a call is heard of though a send came after it.
#[test]
fn sends_between_calls_lose_no_feedback() {
    let dir = Dir::new();
    dir.write("job.jsonl", &calls(&["allreduce", "sendrecv"].repeat(400)));
    let words = "eval --against nccl --without-notes --workload job.jsonl --worlds 4 --seeds 1 --json";
    let document = dir.run(words).json();
    let overall = &tuner(&document, "nccl")["overall"];
    assert!(number(&overall["regret"]) > 0.0, "there is something to learn");
    let policy = &document["tuners"][0]["overall"];
    assert_ne!(policy["regret"], policy["regret_hold"], "{policy}");
}

#[test]
fn what_the_plugin_recorded_is_judged_from_its_folder() {
    let dir = Dir::new();
    dir.write_records("records", 200);
    let words = "eval --policy none --against nccl,oracle --workload records --worlds 1 --seeds 1";
    let document = dir.run(&format!("{words} --clusters dgx_h100 --json")).json();
    assert_eq!((&document["workload"], &document["episodes"]), (&"records".into(), &1.into()));
    assert_eq!(number(&tuner(&document, "nccl")["overall"]["speedup"]), 1.0);
    // NCCL does not say on which machine it runs, and what is wrong with the records is said.
    let said = dir.run(words);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("cluster"), "{}", said.stderr);
    std::fs::remove_file(dir.path("records/dynamiccl-n1-103-1.jsonl")).unwrap();
    let said = dir.run(&format!("{words} --clusters dgx_h100"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("7 of 8"), "{}", said.stderr);
    std::fs::create_dir(dir.path("empty")).unwrap();
    dir.run("eval --policy none --against nccl --workload empty --clusters dgx_h100").assert_error(
        "error: empty: holds no calls: \"no .jsonl file\"; give the folder that DYNAMICCL_PROFILE named while a job made \
         calls",
    );
}

#[test]
fn what_cannot_be_judged_is_said_before_the_work() {
    let dir = Dir::new();
    dir.borrow("src/commands/check_env/example.jsonl", "short.jsonl");
    dir.write("empty.csv", "");
    for (words, said) in [
        ("--against oracel", "error: --against: unknown tuner \"oracel\"; did you mean \"oracle\"? (known: "),
        ("--against nccl --workload short.jsonl --worlds 1", "error: no call was judged: "),
        ("--hide tier_max", "error: --hide: unknown feature or block that can be hidden \"tier_max\""),
        ("--hide topology --workload smoke --against nccl", "error: --hide goes with --workload cells"),
        ("--told --against nccl", "error: --told goes with a recorded sweep"),
        ("--proof tiers --policy none", "error: --policy none: --proof is about a policy"),
        ("--policy none --against=", "error: --against: unknown tuner \"\""),
        ("--against nccl,oracle,nccl", "error: --against nccl: it is named twice, name it once"),
        ("--against fixed:ring", "error: --against fixed:ring: write it like fixed:ring/simple"),
        ("--policy no.safetensors", "error: no.safetensors: "),
        ("--clusters dgx_a100 --tiers 4", "error: no machine is left: none of these clusters"),
        (
            "--against bayes --workload smoke",
            "error: --against bayes: it is the best of fixed knobs in each cell",
        ),
        ("--workload smoke --against nccl --nodes 2", "error: --nodes goes with --workload cells"),
        (
            "--workload smoke --against nccl --clusters dgx_a100",
            "error: --clusters goes with --workload cells",
        ),
        ("--workload empty.csv --against nccl --tiers 2", "error: --tiers goes with simulated times"),
        ("--workload smoek --against nccl", "error: unknown curriculum \"smoek\""),
        ("--workload nope.jsonl --against nccl", "error: nope.jsonl: "),
        (
            "--against nccl,empty.csv",
            "error: empty.csv: no rule in it, so no table; give a policy or a table",
        ),
        ("--proof tiers --told", "error: the argument '--proof <WHAT>' cannot be used with '--told'"),
        (
            "--proof tiers --runtime msccl",
            "error: the argument '--proof <WHAT>' cannot be used with '--runtime <NAME>'",
        ),
        (
            "--policy shipped --against nccl,shipped",
            "error: --against shipped: it is named twice, name it once",
        ),
        ("--csv a.txt --html ./a.txt", "error: --html ./a.txt: --csv names the same file; name another"),
        ("--csv no/such/folder.csv", "error: cannot write no/such/folder.csv"),
    ] {
        let said_instead = dir.run(&format!("eval {words}"));
        assert_eq!(said_instead.code, 2, "{words}");
        let line = said_instead.stderr.lines().next().unwrap_or_default();
        assert!(line.starts_with(said), "{words}: {line}");
    }
}

#[test]
fn the_page_stands_alone_and_shows_every_tuner_and_decision() {
    let dir = Dir::new();
    let said = dir.run(&format!("{} --html page.html", words("nccl,oracle,fixed:ring/simple")));
    assert_eq!(said.code, 0, "{}", said.stderr);
    let text = std::fs::read_to_string(dir.path("page.html")).unwrap();
    assert!(!["http:", "https:", "<script", "url(", "@import"].iter().any(|outside| text.contains(outside)));
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = roxmltree::Document::parse_with_options(&text, options).unwrap();
    let classed = |name: &str| {
        let has = |node: &roxmltree::Node<'_, '_>| {
            node.attribute("class").is_some_and(|class| class.split(' ').any(|word| word == name))
        };
        page.descendants().filter(has).count()
    };
    // A curve for each collective and tuner; a bar for each tuner and group, and in the keys; a map of every
    // collective and size for NCCL, the oracle and the fixed knobs, and the key of pairs.
    assert_eq!(classed("curve"), 5 * 3);
    assert_eq!(classed("bar"), 2 * 3 + 2 * 3);
    assert_eq!(classed("cell"), 55 * 3 + 11);
    let rows = page.descendants().filter(|node| node.has_tag_name("tr")).count();
    assert_eq!(rows, 1 + 2 * 3);
    assert_eq!(page.descendants().filter(|node| node.has_tag_name("li")).count(), 3);
    assert_eq!(text.matches("are in the \u{201c}since start\u{201d} columns only").count(), 2);
    assert!(page.descendants().any(|node| node.text() == Some("fixed:ring/simple")));
}

/// A page goes to people who have not seen the command.
#[test]
fn the_page_says_whether_its_numbers_were_measured() {
    let dir = Dir::new();
    dir.borrow("env/tests/data/live-h200-slowest/loopback_2ranks.csv", "s.csv");
    let page = |words: &str| {
        let words =
            format!("eval --policy none --against nccl,oracle --worlds 1 --seeds 1 --html page.html {words}");
        let said = dir.run(&words);
        assert_eq!(said.code, 0, "{}", said.stderr);
        std::fs::read_to_string(dir.path("page.html")).unwrap()
    };
    let measured = page("--workload s.csv");
    assert!(measured.contains("Measured: every time") && !measured.to_lowercase().contains("simulated"));
    let simulated = page("--clusters dgx_a100 --nodes 2");
    assert!(
        simulated.contains("Simulated: no number here was measured.") && !simulated.contains("Measured:")
    );
}

/// Bars beyond the edge carry their number, dots beyond it are hollow, and held-out clusters have curves.
#[test]
fn the_page_says_where_it_is_cut_off() {
    let dir = Dir::new();
    let words = "eval --policy none --against nccl,fixed:ring/simple/1 --clusters dgx_a100,tcp10g_1gpu --nodes 2 --worlds 1";
    let said = dir.run(&format!("{words} --seeds 1 --progress never --html page.html"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    let text = std::fs::read_to_string(dir.path("page.html")).unwrap();
    assert!(text.contains("class=\"clipped middle\"") && text.contains("class=\"beyond "));
    assert!(text.contains("<h3>Held out, tier ") && text.contains("Both are cut off at 30 %"));
}

/// Without words, the policy that comes with the program is judged, before the others; and only once.
#[test]
fn the_shipped_policy_is_judged_first_by_default() {
    let dir = Dir::new();
    let names = |words: &str| {
        let document = dir.run(&format!("eval {words} {SMALL} --json")).json();
        let tuners = document["tuners"].as_array().expect("tuners").clone();
        tuners.iter().map(|tuner| tuner["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("--against nccl"), ["shipped", "nccl"]);
    assert_eq!(names("--against nccl,shipped"), ["nccl", "shipped"]);
    assert_eq!(names("--policy none --against nccl"), ["nccl"]);
}

/// What a policy is not told changes what it decides, and nobody else's figures.
#[test]
fn hiding_features_changes_what_a_policy_decides() {
    let dir = Dir::new();
    dir.write_wild_policy("wild.safetensors");
    let words = words_with("wild.safetensors", "nccl,bayes");
    let [told, hidden] =
        ["", "--hide topology,pipeline_role"].map(|hide| dir.run(&format!("{words} {hide} --json")).json());
    let regret = |document: &Value, name| number(&tuner(document, name)["overall"]["regret_hold"]);
    assert_ne!(regret(&told, "wild"), regret(&hidden, "wild"));
    assert_eq!(regret(&told, "bayes"), regret(&hidden, "bayes"));
}

/// The proof names what differs; a policy that is NCCL fails it, and NCCL's table is the same at all tiers.
#[test]
fn a_policy_that_does_as_nccl_does_has_not_understood_tiers() {
    let dir = Dir::new();
    dir.write_policy("tiny.safetensors");
    let said = dir.run("eval --policy tiny.safetensors --proof tiers --worlds 1 --seeds 1 --json -q");
    assert_eq!((said.code, said.stderr.as_str()), (1, ""));
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let same = &document["same_call"];
    assert_eq!(
        (&same["cells"], &same["passed"], &document["passed"]),
        (&32.into(), &false.into(), &false.into())
    );
    let at = &same["calls"][0]["tiers"][3];
    assert_eq!((&at["cluster"], &at["tier"], &at["chosen"]), (&"tier4".into(), &4.into(), &at["nccl"]));
    let equal = &document["equal_tables"];
    assert_eq!((&equal["pairs"], &equal["differs"]), (&330.into(), &0.into()));
    let contrasts = equal["contrasts"].as_array().unwrap();
    assert!(contrasts.len() >= 20, "{} calls differ by tier", contrasts.len());
    for contrast in contrasts {
        assert_eq!(contrast["chosen"][0], contrast["chosen"][1], "NCCL cannot tell these apart");
        assert!(number(&contrast["swap"]) > 0.05 && contrast["best"][0] != contrast["best"][1]);
    }
    let regret = |at: usize| number(&equal["tuners"][at]["regret"]);
    assert!(regret(0) == regret(1) && regret(0) == regret(3) && regret(4) < regret(0));
}

/// What README says of real ranks: told what the machine is, the policy that comes with the program is hardly slower than
/// the best setting of every recorded call, with ranks and sizes between powers of two as well.
#[test]
fn the_shipped_policy_is_near_the_best_of_recorded_sweeps() {
    let dir = Dir::new();
    for (folder, most) in [("live-h200-slowest", 0.015), ("live-h200-odd", 0.02)] {
        let sweeps = repository_path(&format!("env/tests/data/{folder}"));
        let words =
            format!("eval --workload {} --told --against nccl --worlds 1 --seeds 1 --json", sweeps.display());
        let document = dir.run(&words).json();
        assert_eq!((&document["simulated"], &document["told"]), (&false.into(), &true.into()));
        let hold = |name: &str| number(&tuner(&document, name)["overall"]["regret_hold"]);
        assert!(
            hold("nccl") > 0.1 && hold("shipped") < most,
            "{folder}: {} {}",
            hold("nccl"),
            hold("shipped")
        );
    }
}
