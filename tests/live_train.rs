//! `live train`: a policy fitted to real measurements, without a GPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use dynamiccl_env::job::Shown;
use dynamiccl_env::swept::{Judgement, Swept, judge};
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::policy::PolicyTuner;
use dynamiccl_spec::{Collective, Decision, Knobs, Measure, Query, Tuner};

use crate::util::{Dir, close, number, repository_path};

const FIRST: &str = "env/tests/data/live-h200/loopback_4ranks.csv";
const SECOND: &str = "env/tests/data/live-h200-held-out/loopback_4ranks.csv";

fn swept(path: &str) -> Arc<Swept> {
    Swept::read(&repository_path(path), None).unwrap().remove(0)
}

/// Knobs by call.
struct Known(BTreeMap<(Collective, u64), Knobs>);

impl Tuner for Known {
    fn name(&self) -> &str {
        "known"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        Decision::chosen(query, self.0[&(query.call.collective, query.call.bytes)])
    }
}

/// The best knobs of one sweep, judged on another of the same machine.
fn best_of(first: &Arc<Swept>, on: &Arc<Swept>) -> Judgement {
    let nothing = judge(first, Shown::NOTHING, &mut Known(own_of(first))).unwrap();
    let best = nothing.cells.iter().map(|cell| ((cell.collective, cell.bytes), cell.best));
    judge(on, Shown::NOTHING, &mut Known(best.collect())).unwrap()
}

fn own_of(swept: &Arc<Swept>) -> BTreeMap<(Collective, u64), Knobs> {
    let sizes = (0..40).map(|octave| 1u64 << octave);
    let calls = sizes.flat_map(|bytes| Collective::TUNED.map(|collective| (collective, bytes)));
    assert!(!swept.is_empty());
    calls.map(|call| (call, Knobs::OWN)).collect()
}

/// From the shipped policy to nearly all that the sweep has to give, and as much as its best knobs on a second sweep of the
/// same machine: what was learned is the machine and not the luck of one measurement.
#[test]
fn a_policy_fitted_to_a_sweep_wins_there_and_on_the_next_one() {
    let dir = Dir::new();
    dir.borrow(FIRST, "first.csv");
    dir.borrow(SECOND, "second.csv");
    let words = "live train --sweep first.csv --judge second.csv --out mine.safetensors \
                 --doubt 0 --enough 0.97 --seconds 110 --fail-below 0.95 --seed 2 --json";
    let document = dir.run(words).json();
    assert_eq!((&document["way"], &document["calls"]), (&"sweep".into(), &serde_json::Value::Null));
    assert!(number(&document["seconds"]) < 120.0, "{document}");
    let line = &document["sweeps"][0];
    for told in ["after", "told"] {
        assert!(number(&line[told]["headroom"]) >= 0.95, "{document}");
        assert!(number(&line[told]["worst_cell"]) >= 0.97, "{document}");
    }
    let fitted = Frozen::open(&dir.path("mine.safetensors")).unwrap();
    let shipped = Frozen::shipped().unwrap();
    assert_eq!(fitted.about.training.parent, Some(shipped.hash()));
    assert!(fitted.about.training.curriculum.contains("sweeps first"), "{:?}", fitted.about.training);
    assert_eq!(document["hash"], format!("{:016x}", fitted.hash()));

    let second = swept(SECOND);
    let mut tuner = PolicyTuner::new(Arc::new(fitted.policy()), None);
    let policy = judge(&second, Shown::NOTHING, &mut tuner).unwrap();
    let line = &document["sweeps"][1];
    assert_eq!(line["fitted"], false);
    assert!(close(number(&line["after"]["speedup"]), policy.speedup), "{document}");
    let known = best_of(&swept(FIRST), &second);
    eprintln!(
        "second sweep: policy {:.3}, best knobs of the first {:.3}, best {:.3}",
        policy.speedup, known.speedup, policy.oracle
    );
    assert!(policy.speedup.ln() >= 0.95 * known.speedup.ln(), "{} {}", policy.speedup, known.speedup);
}

#[test]
fn a_sweep_is_an_environment_and_a_workload() {
    let dir = Dir::new();
    dir.borrow(FIRST, "first.csv");
    let checked = dir.run("check-env trace --sweep first.csv --steps 500 --json").json();
    assert_eq!((&checked["id"], &checked["ok"]), (&"sweep-v1".into(), &true.into()));
    let words = "eval --workload first.csv --against nccl,oracle --policy none --seeds 1 --worlds 1";
    let judged = dir.run(&format!("{words} --json")).json();
    assert_eq!(judged["simulated"], false);
    let figures = |at: usize| &judged["tuners"][at]["overall"];
    assert_eq!((number(&figures(0)["speedup"]), &figures(0)["cells"]), (1.0, &40.into()));
    assert!(number(&figures(1)["speedup"]) > 1.15, "{judged}");
    let text = dir.run(words).stdout;
    assert!(text.contains("# measured: first.csv") && !text.contains("simulated"), "{text}");
}

/// Where `validate` sends those who have a GPU for every rank: nobody who was not named must be in the way.
#[test]
fn a_sweep_of_a_named_cluster_is_judged_without_naming_anybody() {
    let dir = Dir::new();
    dir.borrow(FIRST, "node.csv");
    dir.write("node.csv.about.json", r#"{"shared": false}"#);
    let refused = dir.run("validate --sweeps node.csv");
    let (_, advice) = refused.stderr.split_once("`dynamiccl ").expect("a command");
    let words = advice.split('`').next().unwrap().replace("NAME", "tcp10g_1gpu");
    let document = dir.run(&format!("{words} --seeds 1 --worlds 1 --json")).json();
    let names = document["tuners"].as_array().unwrap().iter().map(|tuner| tuner["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    assert!(names.contains(&"oracle") && !names.contains(&"bayes"), "{names:?}");
    dir.run(&format!("{words} --against bayes"))
        .assert_error_with("--against bayes: it is the best of fixed knobs");
}

#[test]
fn what_cannot_be_fitted_is_an_error() {
    let dir = Dir::new();
    let header = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us";
    dir.write("lonely.csv", &format!("{header}\n4,loopback,allreduce,1024,default,default,,9.0,8.0,9.5\n"));
    dir.write("odd.csv", &format!("{header}\n3,loopback,allreduce,1024,ring,LL,1,9.0,8.0,9.5\n"));
    dir.write("node.csv", &format!("{header}\n8,none,allreduce,1024,default,default,,9.0,8.0,9.5\n"));
    dir.write("node.csv.about.json", r#"{"shared": false}"#);
    dir.write("two.csv", &sweep_of("", "1gbit"));
    dir.write_policy("tiny.safetensors");
    dir.borrow("env/tests/data/traces/job.jsonl", "job.jsonl");
    dir.run("export --policy tiny.safetensors --out late.safetensors --history job.jsonl --json").json();
    for (words, expected) in [
        ("--sweep none.csv", "none.csv"),
        ("--sweep lonely.csv", "no call has both"),
        ("--sweep odd.csv --cluster dgx_h100", "odd.csv: link loopback is one of ranks that share a GPU"),
        ("--sweep odd.csv --cluster tcp10g_1gpu", "no call has both"),
        (
            "--sweep node.csv",
            "node.csv: its ranks had a GPU each; name the machine that was measured, for instance --cluster dgx_h100",
        ),
        ("--sweep node.csv --cluster dgx_h100", "no call has both"),
        ("--sweep odd.csv --cluster dgx_h10", "did you mean"),
        ("--sweep odd.csv --cluster tcp10g_1gpu --policy none.safetensors", "none.safetensors"),
        (
            "--ranks 2 --share-gpu --policy late.safetensors",
            "--policy late.safetensors: the policy begins with the memory of a recorded job",
        ),
        ("--sweep odd.csv --doubt 11", "a doubt is a number from 0 to 10"),
        ("--sweep odd.csv --ranks 2", "cannot be used with"),
        ("--sweep odd.csv --sizes 1K", "cannot be used with"),
        ("--sweep odd.csv --collectives allreduce", "cannot be used with"),
        ("--sweep odd.csv --env X=Y", "cannot be used with"),
        ("--sweep odd.csv --timeout 1", "cannot be used with"),
        ("--sweep odd.csv --nccl /nowhere", "cannot be used with"),
        ("--sweep odd.csv,./odd.csv", "--sweep ./odd.csv: it is named twice; name it once"),
        ("--sweep odd.csv --judge odd.csv", "--judge odd.csv: --sweep names the same file; name another"),
        ("--sweep . --judge odd.csv", "--judge odd.csv: --sweep names the same file; name another"),
        ("", "--ranks: say how many to start"),
        (
            "--sweep two.csv",
            "no call was swept with NCCL's own threads, 128 threads on the same ranks, link and clock",
        ),
        (
            "--ranks 2 --share-gpu --cluster dgx_h100",
            "--cluster dgx_h100: ranks that share a GPU are hosts of one GPU each, and its nodes have 8",
        ),
        ("--ranks 65 --share-gpu --sizes 256", "--sizes: allgather 256: each of 65 ranks has a part of it"),
        ("--ranks 2 --calls 10", "--calls 10: one update takes up to 256"),
        ("--sweep odd.csv --simulated 2", "a share is a number from 0 to 1"),
        ("--sweep odd.csv --set without.anchor=true", "a policy keeps its network"),
        ("--sweep odd.csv --set loss.entropi=1", "did you mean \"loss.entropy\""),
    ] {
        let said = dir.run(&format!("live train --out mine.safetensors {words}"));
        assert_eq!(said.code, 2, "{words}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{words}: {}", said.stderr);
    }
    dir.run("live train --sweep odd.csv --out mine.csv")
        .assert_error("error: --out mine.csv: a policy ends in .safetensors");
    assert!(!dir.names().iter().any(|name| name.starts_with("mine")));
}

/// A sweep with 128 threads over loopback, and one with other threads over a link.
fn sweep_of(threads: &str, link: &str) -> String {
    let mut text =
        "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nthreads\n".to_owned();
    for (link, threads, us) in [("loopback", "128", 50), (link, threads, 60)] {
        for (knobs, us) in [("default,default,", 90), ("ring,LL,1", us)] {
            text += &format!("4,{link},allreduce,65536,{knobs},{us},{us},{us},{threads}\n");
        }
    }
    text
}

/// NCCL reads the number once: a policy has one, and the sweeps with others are named.
#[test]
fn sweeps_with_other_threads_are_named() {
    let dir = Dir::new();
    dir.write("two.csv", &sweep_of("256", "loopback"));
    let said = dir.run("live train --sweep two.csv --out mine.safetensors --steps 1");
    assert_eq!(said.code, 0, "{}", said.stderr);
    let note = "# note: two with 256 threads is left out: 128 threads are faster";
    assert!(said.stdout.lines().any(|line| line == note), "{}", said.stdout);
}

/// By rank 0's clock broadcasts seem to gain what no job sees.
#[test]
fn a_sweep_whose_broadcasts_end_at_the_root_is_spoken_of() {
    const SLOWEST: &str = "env/tests/data/live-h200-slowest/loopback_2ranks.csv";
    let dir = Dir::new();
    dir.borrow(FIRST, "first.csv");
    dir.borrow(SLOWEST, "slowest.csv");
    dir.borrow(&format!("{SLOWEST}.about.json"), "slowest.csv.about.json");
    for (sweep, speaks) in [("first", true), ("slowest", false)] {
        let said = dir.run(&format!("live train --sweep {sweep}.csv --out {sweep}.safetensors --steps 1"));
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert_eq!(said.stdout.contains("note: first is by rank 0's clock"), speaks, "{}", said.stdout);
    }
}

#[test]
fn a_moment_that_is_none_is_refused_before_the_work() {
    let dir = Dir::new();
    dir.borrow(FIRST, "first.csv");
    let words = "live train --sweep first.csv --out mine.safetensors --steps 1";
    dir.run_with(words, &[("SOURCE_DATE_EPOCH", "-5")])
        .assert_error_with("SOURCE_DATE_EPOCH=-5: not a moment");
    assert_eq!(dir.names(), ["first.csv"]);
}
