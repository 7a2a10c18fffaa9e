//! `train`: its lines, its folder, going on after anything, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use crate::util::{Dir, fields, number};

/// A run that takes a second: a small network and rollout, a short look at the end.
const TINY: &str = "train --curriculum smoke --set network.table=false --set network.memory=8 --set network.embedding=8 \
                    --set network.expert=8 --set network.resource=8 --set network.critic=8 \
                    --set rollout.environments=8 --set rollout.steps=16 --set optimiser.minibatches=2 \
                    --set evaluation.every=512 --set evaluation.worlds=1 \
                    --eval-clusters dgx_h100 --eval-worlds 1 --eval-seeds 1 --against nccl";
/// Words of the judgement at the end, for runs that go on.
const BRIEF: &str = "--eval-clusters dgx_h100 --eval-worlds 1 --eval-seeds 1 --against nccl";
/// A moment, so that files of different runs are the same bytes.
const MOMENT: (&str, &str) = ("SOURCE_DATE_EPOCH", "1794738790");
/// The folder of a run that began then.
const RUN: &str = "checkpoints/smoke__s1__20261115T103310Z";

fn start(dir: &Dir, words: &str) -> Child {
    let mut command = Command::new(cargo_bin!("dynamiccl"));
    command.current_dir(dir.path("")).args(words.split_whitespace()).env(MOMENT.0, MOMENT.1);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run dynamiccl")
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().expect("send a signal");
}

/// Waits until a file is there.
fn await_file(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} never came", path.display());
        thread::sleep(Duration::from_millis(10));
    }
}

/// A run's files that hold results, without what depends on the clock.
fn results(run: &Path) -> (Vec<u8>, Vec<Value>) {
    let lines = fs::read_to_string(run.join("metrics.jsonl")).expect("the metrics");
    let timeless = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("a line of JSON");
        let fields = line.as_object_mut().expect("an object");
        ["seconds", "sps", "time"].iter().for_each(|field| drop(fields.remove(*field)));
        line
    };
    let policy = fs::read(run.join("policy.safetensors")).expect("the policy");
    (policy, lines.lines().map(timeless).collect())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run that nothing has disturbed.
fn undisturbed(words: &str) -> (Vec<u8>, Vec<Value>) {
    let dir = Dir::new();
    let said = dir.run_with(words, &[MOMENT]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    results(&dir.path(RUN))
}

fn names(folder: PathBuf) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_lines_keep_the_contract_and_the_folder_its_layout() {
    let dir = Dir::new();
    let said = dir.run_with(&format!("{TINY} --steps 1024 --out runs --seed 3 --json"), &[MOMENT]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let run = "runs/smoke__s3__20261115T103310Z";
    assert_eq!(said.stderr, format!("smoke, seed 3, run {run}\n"));
    let lines: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, others) = lines.split_last().unwrap();
    for line in others {
        for field in ["step", "stage", "sps", "regret", "seconds", "kind"] {
            assert!(!line[field].is_null(), "{field}: {line}");
        }
    }
    let judged: Vec<&Value> = others.iter().filter(|line| line["kind"] == "eval").collect();
    assert_eq!((judged.len(), others.len()), (1, 9));
    assert_eq!(fields(&judged[0]["regret"]), ["all", "tier1", "tier2"]);
    assert_eq!(judged[0]["regret"], others[8]["regret"]);
    let expected = ["command", "done", "eval", "policy", "run", "schema", "seconds", "seed", "sps", "steps"];
    assert_eq!(fields(last), expected);
    assert_eq!((&last["done"], &last["steps"], &last["seed"]), (&true.into(), &1024.into(), &3.into()));
    assert_eq!(last["run"], run);
    let tiers = last["eval"]["tiers"].as_array().unwrap();
    assert_eq!(tiers.iter().map(|tier| number(&tier["tier"])).collect::<Vec<_>>(), [1.0, 2.0]);
    assert_eq!(last["eval"]["tiers"], last["eval"]["tuners"][0]["tiers"]);

    let layout =
        [".lock", "checkpoints", "config.toml", "eval.json", "metrics.jsonl", "policy.safetensors", "tb"];
    assert_eq!(names(dir.path(run)), layout);
    assert_eq!(
        names(dir.path(run).join("checkpoints")),
        ["best.safetensors", "step-0.ckpt", "step-1024.ckpt"]
    );
    let policy = dir.run(&format!("inspect {run}/policy.safetensors --json")).json();
    let text = policy.to_string();
    assert!(text.contains("dynamiccl train --curriculum smoke --seed 3 --steps 1024 --set "), "{text}");
    let eval: Value =
        serde_json::from_str(&fs::read_to_string(dir.path(run).join("eval.json")).unwrap()).unwrap();
    assert_eq!(eval["tuners"], last["eval"]["tuners"]);
    // The policy of a run can be taken from it, and judged by hand to the same figures.
    let said = dir.run(&format!("export --run {run} --out mine.safetensors --json"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(fs::read(dir.path("mine.safetensors")).unwrap(), results(&dir.path(run)).0);
    let words = "eval --policy mine.safetensors --against nccl --tiers 1,2 --clusters dgx_h100 --worlds 1 --seeds 1 --json";
    assert_eq!(dir.run(words).json()["tuners"][0]["tiers"], last["eval"]["tiers"]);
}

/// What makes any agent a tiny one.
const SMALL: &str = "--set network.embedding=8 --set network.expert=8 --set network.critic=8 \
                     --set rollout.environments=8 --set rollout.steps=16 --set optimiser.minibatches=2 \
                     --set evaluation.every=256 --set evaluation.worlds=1 --eval-worlds 1 --steps 384";

/// The curriculum of a WAN with one correlation, so that judging takes a moment.
fn brief_wan(dir: &Dir) {
    let text = fs::read_to_string(crate::util::repository_path("curricula/wan.toml")).unwrap();
    let (before, rest) = text.split_once("rho = {").unwrap();
    let (_, after) = rest.split_once("}\n").unwrap();
    fs::write(dir.path("brief.toml"), format!("{before}rho = [\"0.95\"]\n{after}")).unwrap();
}

/// Networks that change: the same lines, folder, checkpoints and policies, with figures of their own.
#[test]
fn what_is_learned_is_the_curriculums_to_say() {
    for (words, watched, place, kind) in [
        ("--curriculum brief.toml", "over_clairvoyant", "rho0.95", "wan"),
        ("--curriculum rails", "increase", "pp8", "rails"),
    ] {
        let dir = Dir::new();
        brief_wan(&dir);
        let whole = dir.run_with(&format!("train {words} {SMALL} --out whole --json"), &[MOMENT]);
        assert_eq!(whole.code, 0, "{}", whole.stderr);
        let lines: Vec<Value> =
            whole.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (last, others) = lines.split_last().unwrap();
        let judged = others.iter().find(|line| line["kind"] == "eval").unwrap();
        assert!(number(&judged[watched][place]) > 0.0 && judged["regret"].is_null(), "{judged}");
        assert!(number(&last["eval"]["cells"][0]["learned"]) > 0.0, "{last}");
        let run = last["run"].as_str().unwrap();
        let policy = last["policy"].as_str().unwrap();
        let about = dir.run(&format!("inspect {policy} --json")).json().to_string();
        assert!(about.contains(&format!("dynamiccl train {words} --seed 1 --steps 384")), "{about}");
        // Stopped after half of it, it goes on to the same bits.
        let half = format!("train {words} {SMALL} --out half --steps 256");
        let half = half.replacen("--steps 384", "", 1);
        assert_eq!(dir.run_with(&half, &[MOMENT]).code, 0);
        let again = "train --resume latest --out half --steps 384 --override --eval-worlds 1";
        let said = dir.run_with(again, &[MOMENT]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        let other = dir.path(&run.replacen("whole", "half", 1));
        assert!(results(&dir.path(run)) == results(&other), "{kind}");
        // And it is a policy for nothing else.
        let judge = if kind == "wan" { "wan --traces 1 --collectives 20" } else { "rails --repetitions 1" };
        assert!(number_of(&dir.run(&format!("{judge} --policy {policy} --json")).json()["learned"]) > 0.0);
        let wrong = if kind == "wan" { "rails" } else { "wan" };
        let said = dir.run(&format!("{wrong} --policy {policy}"));
        assert!(
            said.stderr.contains(&format!("give a policy that was trained on \"{wrong}\"")),
            "{}",
            said.stderr
        );
    }
}

/// A number, or the mean of a figure with its spread.
fn number_of(value: &Value) -> f64 {
    number(if value.is_object() { &value["mean_ms"] } else { value })
}

/// A row of stages that are over in a few updates.
const ROW: &str = "schema = 1\ndescription = \"a row\"\nstages = [\"stage1\", \"stage2\"]\nsteps = 0.0005\n";

/// From one stage to the next, and stopped on either side of it: the same bits.
#[test]
fn stages_follow_each_other_and_a_run_goes_on_in_any_of_them() {
    let words = TINY.replacen("--curriculum smoke", "--curriculum row.toml", 1);
    let words = words.replacen("evaluation.every=512", "evaluation.every=256", 1);
    let [whole, parts] = [Dir::new(), Dir::new()];
    for dir in [&whole, &parts] {
        fs::write(dir.path("row.toml"), ROW).unwrap();
    }
    let said = whole.run_with(&format!("{words} --threads 2 --json"), &[MOMENT]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let lines: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let promoted: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "promotion").collect();
    assert_eq!(promoted.len(), 1, "one stage follows one");
    let last = number(&lines[lines.len() - 1]["steps"]) as u64;
    let step = number(&promoted[0]["step"]) as u64;
    assert!(0 < step && step < last, "{step} {last}");
    let run = "checkpoints/row__s1__20261115T103310Z";
    assert_eq!(parts.run_with(&format!("{words} --steps {}", step - 128), &[MOMENT]).code, 0);
    // Whoever stops at the last step has not judged it.
    for steps in [step + 128, 2 * last] {
        let again = format!("train --resume latest --steps {steps} --override --threads 1 {BRIEF}");
        let said = parts.run_with(&again, &[MOMENT]);
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
    let [whole, parts] = [whole, parts].map(|dir| results(&dir.path(run)).1);
    assert_eq!(whole, parts);
}

#[test]
fn threads_change_nothing() {
    let [one, two] = [1, 2].map(|threads| undisturbed(&format!("{TINY} --steps 768 --threads {threads}")));
    assert_eq!(one.1, two.1);
    assert!(one.0 == two.0, "the policies differ");
}

#[test]
fn ctrl_c_saves_and_the_line_that_it_prints_goes_on() {
    let words = format!("{TINY} --steps 2048");
    let dir = Dir::new();
    let child = start(&dir, &words);
    await_file(&dir.path(RUN).join("checkpoints/step-0.ckpt"));
    thread::sleep(Duration::from_millis(300));
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let talk = said(&output);
    let line = talk.lines().find_map(|line| line.strip_prefix("saved; go on with: dynamiccl ")).expect(&talk);
    assert_eq!(
        line,
        format!(
            "train --resume {RUN} --against nccl --eval-clusters dgx_h100 --eval-worlds 1 --eval-seeds 1"
        )
    );
    let said = dir.run_with(line, &[MOMENT]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(results(&dir.path(RUN)) == undisturbed(&words));
}

/// The run was saved before its policy is judged: nothing is lost, and going on judges it.
#[test]
fn ctrl_c_ends_the_last_judgement_of_networks_that_change() {
    for name in ["brief", "rails"] {
        let dir = Dir::new();
        brief_wan(&dir);
        let curriculum = if name == "brief" { "brief.toml" } else { name };
        let words = SMALL.replace("--eval-worlds 1", "--eval-worlds 1000");
        let child = start(&dir, &format!("train --curriculum {curriculum} {words}"));
        let run = format!("checkpoints/{name}__s1__20261115T103310Z");
        await_file(&dir.path(&run).join("policy.safetensors"));
        thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(10), "{name}: {:?}", asked.elapsed());
        assert_eq!(output.status.code(), Some(130), "{name}: {}", said(&output));
        assert!(
            said(&output).contains(&format!("saved; go on with: dynamiccl train --resume {run}")),
            "{name}"
        );
        let again = dir.run_with(&format!("train --resume {run} --eval-worlds 1"), &[MOMENT]);
        assert_eq!(again.code, 0, "{name}: {}", again.stderr);
        assert!(dir.path(&run).join("eval.json").exists(), "{name}");
    }
}

#[test]
fn a_killed_run_goes_on_to_the_same_bits() {
    let words = format!("{TINY} --steps 2048");
    let dir = Dir::new();
    let mut child = start(&dir, &format!("{words} --checkpoint-every 0s"));
    await_file(&dir.path(RUN).join("checkpoints/step-0.ckpt"));
    for delay in [150, 420, 290] {
        thread::sleep(Duration::from_millis(delay));
        signal(&child, "-KILL");
        child.wait().unwrap();
        child = start(&dir, &format!("train --resume latest --checkpoint-every 256 {BRIEF}"));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let (disturbed, whole) = (results(&dir.path(RUN)), undisturbed(&words));
    assert_eq!(disturbed.1, whole.1);
    assert!(disturbed.0 == whole.0, "the policies differ");
}

#[test]
fn a_full_disk_harms_nothing_that_was_saved() {
    let dir = Dir::new();
    assert_eq!(dir.run_with(&format!("{TINY} --steps 256"), &[MOMENT]).code, 0);
    let checkpoint = dir.path(RUN).join("checkpoints/step-256.ckpt");
    let before = fs::read(&checkpoint).unwrap();
    // No file may grow beyond some blocks, fewer than a checkpoint has; the signal for it is ignored, so the
    // write fails as it does on a full disk.
    let words = format!("train --resume latest --steps 512 --override {BRIEF}");
    let blocks = before.len() / 1024 / 2;
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {words}");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).arg(cargo_bin!("dynamiccl")).current_dir(dir.path(""));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("step-512.ckpt: File too large"), "{}", said(&output));
    assert!(fs::read(&checkpoint).unwrap() == before);
    assert!(!names(dir.path(RUN).join("checkpoints")).iter().any(|name| name.ends_with(".tmp")));
    assert_eq!(dir.run_with(&format!("train --resume latest {BRIEF}"), &[MOMENT]).code, 0);
    assert!(results(&dir.path(RUN)).1 == undisturbed(&format!("{TINY} --steps 512")).1);
}

#[test]
fn a_broken_checkpoint_is_said_and_the_one_before_is_used() {
    let dir = Dir::new();
    let words = format!("{TINY} --steps 384 --checkpoint-every 128");
    assert_eq!(dir.run_with(&words, &[MOMENT]).code, 0);
    let whole = results(&dir.path(RUN));
    let last = dir.path(RUN).join("checkpoints/step-384.ckpt");
    let mut bytes = fs::read(&last).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&last, bytes).unwrap();
    let said = dir.run_with(&format!("train --resume {RUN} {BRIEF}"), &[MOMENT]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("step-384.ckpt: its content has the fingerprint "), "{}", said.stderr);
    assert!(said.stderr.contains(&format!("run {RUN}, from step 256\n")), "{}", said.stderr);
    assert!(results(&dir.path(RUN)) == whole);
}

#[test]
fn other_settings_are_listed_and_refused() {
    let dir = Dir::new();
    assert_eq!(dir.run_with(&format!("{TINY} --steps 128"), &[MOMENT]).code, 0);
    dir.run(&format!("train --resume {RUN} --seed 2 --set loss.entropy=[0.1,0.01]")).assert_error(&format!(
        "error: --resume {RUN}: these are not the run's settings: seed 1 → 2; config.loss.entropy [0.05, 0.005] → \
         [0.1, 0.01]; leave them as they were, or give --override"
    ));
    let said = dir.run(&format!("train --resume {RUN} --steps 256 --override {BRIEF}"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.starts_with("override: steps 128 → 256\n"), "{}", said.stderr);
    let kept = fs::read_to_string(dir.path(RUN).join("config.toml")).unwrap();
    assert!(kept.contains("steps = 256\n"), "{kept}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let dir = Dir::new();
    for (words, expected) in [
        ("--curriculum rials", "error: unknown curriculum \"rials\"; did you mean \"rails\"?"),
        (
            "--curriculum wan --constants blind",
            "error: --constants blind: this curriculum is not about NCCL's knobs",
        ),
        ("--curriculum smok", "error: unknown curriculum \"smok\"; did you mean \"smoke\"?"),
        ("--curriculum smoke --set loss.entropi=1", "error: --set loss.entropi=1: unknown setting"),
        ("--curriculum smoke --without memory", "error: --without memory: unknown part \"memory\""),
        (
            "--curriculum smoke --device gpu",
            "error: invalid value 'gpu' for '--device <DEVICE>': unknown device",
        ),
        ("--curriculum smoke --set rollout.environments=0", "error: rollout.environments is 0"),
        (
            "--resume nowhere",
            "error: nowhere: no run, it has no config.toml; give the folder that train named",
        ),
        ("--resume latest --out .", "error: .: there is no run to go on with; begin one with --curriculum"),
        ("", "error: the following required arguments were not provided:"),
    ] {
        let said = dir.run(&format!("train {words}"));
        assert!(said.stderr.starts_with(expected), "{words}: {}", said.stderr);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{words}");
    }
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

/// There is no run yet that could be gone on with.
#[test]
fn a_file_is_no_folder_for_runs() {
    let dir = Dir::new();
    dir.write("junk.csv", "");
    dir.run("train --curriculum smoke --out junk.csv").assert_error(
        "error: cannot make junk.csv: File exists (os error 17); give --out a folder that can be written to",
    );
    assert_eq!(dir.names(), ["junk.csv"]);
}

#[test]
fn a_moment_that_is_none_is_refused_before_the_work() {
    let dir = Dir::new();
    dir.run_with("train --curriculum smoke", &[("SOURCE_DATE_EPOCH", "abc")]).assert_error(
        "error: SOURCE_DATE_EPOCH=abc: not a moment; give whole seconds since 1970 (0 to 253402300799), or unset it",
    );
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}
