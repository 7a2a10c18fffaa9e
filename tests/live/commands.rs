//! What the commands of `live` make of real ranks and of words: signals, other machines' sweeps, starts by turns, interrupted
//! beginnings, variables that have two values, time that is over.

use std::io::{BufRead, BufReader};

use super::*;

/// The guard of a run.
fn guard_of(run: &Run) -> u32 {
    let is_guard = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"guard")
    };
    run.left().into_iter().find(is_guard).expect("a guard")
}

/// A whole job is ended by signals to all of its processes, some of them twice, before it is killed.
#[test]
fn a_guard_outlives_every_signal_that_a_job_is_ended_by() {
    let Victim { run, mut child, .. } = Victim::new();
    let guard = guard_of(&run);
    for name in ["-TERM", "-TERM", "-HUP", "-INT", "-QUIT"] {
        signal(name, guard);
        // A second request would end the other processes now.
        thread::sleep(Duration::from_millis(400));
    }
    signal("-KILL", child.id());
    child.wait().unwrap();
    run.assert_nothing_is_left_soon();
}

/// What was best over another link, or by another clock, is no yardstick.
#[test]
fn the_best_of_a_sweep_is_that_of_ranks_like_these() {
    let run = Run::new(&[]);
    let words = "--ranks 2 --share-gpu --collectives allreduce --sizes 1K";
    let swept = run.run(&format!("sweep {words} --out s.csv --rounds 3 --most-rounds 3 --clock slowest"));
    assert_eq!(swept.code, 0, "{}", swept.stderr);
    let file = run.dir.path("s.csv");
    let text = fs::read_to_string(&file).unwrap();
    let faster = "2,10gbit,allreduce,1024,tree,LL,1,0.1,0.1,0.1,,9,0.1,0.1";
    fs::write(&file, format!("{text}{faster}\n")).unwrap();
    let eval = format!("eval {words} --rounds 3 --most-rounds 3 --against oracle --sweep s.csv");
    let said = run.run(&format!("{eval} --json"));
    assert!(said.code <= 1, "{}", said.stderr);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(document["cells"][0]["oracle"], "ring/simple 4ch");
    run.run(&format!("{eval} --clock first")).assert_error_with(
        "it has no setting of allreduce 1K with 2 ranks, loopback, clock first; other calls of the file are with 2 ranks, \
         loopback, clock slowest and with 2 ranks, links of 10 Gbit, clock slowest",
    );
}

/// Rounds of one start say nothing of the next: what counts is three starts of each side, in one call and in all.
#[test]
fn ranks_started_by_turns_are_compared_start_by_start() {
    let words = "eval --ranks 2 --share-gpu --collectives allreduce --sizes 1K --rounds 12 --most-rounds 12 --launch-threads 128";
    let said = Run::new(&[]).run(&format!("{words} --json"));
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let cell = &document["cells"][0];
    assert_eq!((&cell["rounds"], &cell["speedup"]), (&12.into(), &document["speedup"]));
    let [ratio, low, high] = ["ratio", "low", "high"].map(|end| cell["speedup"][end].as_f64().unwrap());
    assert!((low * high / ratio.powi(2) - 1.0).abs() < 1e-9, "Student's interval: {cell}");
}

#[test]
fn an_interrupt_while_ranks_are_asked_for_the_first_time_is_one() {
    // Ten calls, whose own choice takes two rounds of some hundred milliseconds each.
    let run = Run::new(&[("FAKE_CALL_US", "20000")]);
    let child = run.start(
        "train --ranks 2 --share-gpu --sizes 64K,128K,256K,512K,1M --collectives allreduce,broadcast --out p.safetensors",
    );
    wait_for_ranks(&child);
    thread::sleep(Duration::from_millis(700));
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str()), (Some(130), "interrupted\n"));
    assert!(!run.dir.path("p.safetensors").exists());
    run.assert_nothing_is_left_soon();
}

fn wait_for_ranks(child: &Child) {
    let until = Instant::now() + Duration::from_secs(30);
    while ranks_of(child.id()).len() < 2 && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a rank of a training, which ends it with an error that says so.
fn bereave(run: &Run, child: Child) {
    signal("-KILL", ranks_of(child.id())[1]);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rank 1 died (killed by signal 9, SIGKILL)"), "{said}");
    run.assert_nothing_is_left_soon();
}

#[test]
fn ranks_that_die_end_a_training_by_name() {
    let run = Run::new(&[("FAKE_CALL_US", "20000")]);
    let child = long_training(&run, Duration::from_secs(1));
    bereave(&run, child);
    assert!(!run.dir.path("p.safetensors").exists(), "nothing was learnt");
}

#[test]
fn ranks_that_die_later_leave_what_was_learnt() {
    // More calls, each in earnest, than could be known well before somebody looks.
    let run = Run::new(&[("FAKE_CALL_US", "500")]);
    let mut child = run.start(
        "train --ranks 2 --share-gpu --sizes 1K..1M --out p.safetensors --calls 1000000 --seconds 100 \
         --set rollout.environments=4 --set rollout.steps=4",
    );
    // Progress is told after an update.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("live train: ") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ends before anything was learnt");
    }
    child.stderr = Some(said.into_inner());
    bereave(&run, child);
    Frozen::open(&run.dir.path("p.safetensors")).unwrap();
}

/// However slow calls are: an update has 256 of them, and NCCL is asked about every cell before.
#[test]
fn a_training_keeps_its_seconds() {
    let run = Run::new(&[("FAKE_CALL_US", "4000")]);
    let words =
        "train --ranks 2 --share-gpu --sizes 64K --collectives allreduce,broadcast --out p.safetensors";
    let begun = Instant::now();
    run.run(&format!("{words} --seconds 2"))
        .assert_error_with("--seconds 2: over before one update, which takes up to 256 calls");
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert!(!run.dir.path("p.safetensors").exists(), "nothing was learnt");
    let asked = run.run(&words.replace("--sizes 64K", "--sizes 1K..16M --seconds 1"));
    asked.assert_error_with("the time was over when NCCL's own choice was timed of ");
    let begun = Instant::now();
    let little = "--set rollout.environments=4 --set rollout.steps=2 --simulated 0";
    let document =
        run.run(&format!("{} --seconds 5 {little} --json", words.replace(",broadcast", ""))).json();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(document["steps"].as_u64().unwrap() >= 8, "{document}");
    run.assert_nothing_is_left();
}

/// What the run sets itself would win or lose silently, and times would be those of other ranks than the file says.
#[test]
fn a_variable_that_the_run_sets_is_refused_and_not_taken_for_the_shells() {
    let run = Run::new(&[("NCCL_HOSTID", "shell"), ("NCCL_NTHREADS", "512"), ("NCCL_BUFFSIZE", "1048576")]);
    let eval = "eval --ranks 2 --share-gpu --collectives allreduce --sizes 1K";
    for (words, name, by) in [
        (SHORT, "NCCL_TUNER_PLUGIN=none", "every live run sets it"),
        (SHORT, "DYNAMICCL_MODE=off", "every live run sets it"),
        (SHORT, "DYNAMICCL_LIVE_RANK=0", "every live run sets it"),
        (SHORT, "NCCL_HOSTID=me", "--share-gpu sets it"),
        (SHORT, "NCCL_IB_DISABLE=0", "--share-gpu sets it"),
        (SHORT, "NCCL_SOCKET_IFNAME=eth0", "--share-gpu sets it"),
        (SHORT, "CUDA_MPS_PIPE_DIRECTORY=/tmp/mine", "--share-gpu sets it"),
        (SHORT, "CUDA_MPS_LOG_DIRECTORY=/tmp/mine", "--share-gpu sets it"),
        (&format!("{SHORT} --threads 256"), "NCCL_NTHREADS=128", "--threads or --launch-threads sets it"),
        (
            &format!("{eval} --launch-threads 256"),
            "NCCL_NTHREADS=128",
            "--threads or --launch-threads sets it",
        ),
        (eval, "DYNAMICCL_POLICY=x", "--policy or --context sets it"),
    ] {
        let told = run.run(&format!("{words} --env {name}"));
        let name = name.split_once('=').unwrap().0;
        told.assert_error_with(&format!("--env {name}: {by}; leave --env {name} out"));
    }
    let brief = format!("{SHORT} --sizes 1K --collectives allreduce --json");
    let document = run.run(&format!("{brief} --threads 256")).json();
    assert_eq!(document["conditions"]["variables"], serde_json::json!({"NCCL_BUFFSIZE": "1048576"}));
    // Without --threads it is the shell's, which ranks get.
    let other = brief.replace("s.csv", "own.csv");
    let document = run.run(&format!("{other} --env NCCL_SOCKET_NTHREADS=2")).json();
    let told = serde_json::json!({
        "NCCL_BUFFSIZE": "1048576", "NCCL_NTHREADS": "512", "NCCL_SOCKET_NTHREADS": "2"
    });
    assert_eq!(document["conditions"]["variables"], told);
}

#[test]
fn of_few_rounds_nothing_is_sure() {
    let run = Run::new(&[]);
    let words = "eval --ranks 2 --share-gpu --collectives allreduce --sizes 1K --rounds 5 --most-rounds 5";
    let document = run.run(&format!("{words} --json")).json();
    assert_eq!((&document["cells"][0]["verdict"], &document["unsure"]), (&"unsure".into(), &1.into()));
    let said = run.run(words);
    let line = "# 1 cell with fewer than 6 rounds, of which nothing is sure; give more --most-rounds";
    assert!(said.code == 0 && said.stdout.lines().any(|said| said == line), "{}", said.stdout);
}

#[test]
fn a_sweep_that_nobody_looks_up_is_refused() {
    let words = "eval --ranks 2 --share-gpu --sweep nowhere.csv";
    Run::new(&[])
        .run(words)
        .assert_error_with("--sweep: only oracle is looked up there; give --against nccl,oracle");
}
