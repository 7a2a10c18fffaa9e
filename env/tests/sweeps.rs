//! Recorded sweeps as environments: the contract, what is known of every choice, what an evaluation finds.

use std::path::PathBuf;
use std::sync::Arc;

use dynamiccl_env::evaluate::{Entrant, Evaluation};
use dynamiccl_env::gym::check::{CheckOptions, check};
use dynamiccl_env::gym::{Action, Env, EnvError, Observation};
use dynamiccl_env::job::Shown;
use dynamiccl_env::measure::sweep::{self, Setting};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::{Swept, judge};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Choice, Decision, Head, Knobs, Measure, Query, Tuner};

/// Numbers of [`SimEnv::gains`].
const CHOICES: usize = PAIRS * Head::Channels.size() * Head::Chunk.size();

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn sweeps(name: &str) -> Vec<Arc<Swept>> {
    Swept::read(&data(name), None).unwrap_or_else(|error| panic!("{error}"))
}

fn env(name: &str) -> SimEnv {
    SimEnv::of_sweeps(sweeps(name), None, Arc::new(ConstantsFile::full()))
}

/// Always NCCL's own.
struct Own;

impl Tuner for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        Decision::chosen(query, query.own())
    }
}

#[test]
fn sweeps_keep_the_contract() {
    for folder in ["live-h200", "live-h200-held-out/1gbit_2ranks.csv"] {
        let options = CheckOptions { steps: 3000, seeds: vec![1, 2, 3], ..CheckOptions::default() };
        let report = check(|| Ok::<_, EnvError>(env(folder)), &options, |_| Ok::<_, EnvError>(())).unwrap();
        assert_eq!(report.broken().map(|rule| rule.name).collect::<Vec<_>>(), [""; 0], "{folder}");
        assert_eq!(report.id, "sweep-v1");
    }
}

/// Every cell of every file has NCCL's own line and settings beside it, and none is lost.
#[test]
fn every_cell_of_a_file_is_there() {
    for folder in ["live-h200", "live-h200-held-out"] {
        for (swept, read) in sweeps(folder).iter().zip(sweep::read(&data(folder)).unwrap()) {
            let own = read.rows.iter().filter(|row| row.setting == Setting::Default).count();
            assert_eq!((swept.len(), swept.ranks()), (own, read.ranks), "{}", swept.name);
        }
    }
}

/// Two starts of the same ranks say together what each says alone, and are surer of it; other ranks, links and clocks
/// stay apart.
#[test]
fn sweeps_of_one_machine_are_put_together() {
    let files =
        ["loopback_2ranks", "10gbit_4ranks", "loopback_4ranks"].map(|file| format!("live-h200/{file}.csv"));
    let again = ["live-h200-held-out", "live-h200-slowest"].map(|of| format!("{of}/loopback_4ranks.csv"));
    let all: Vec<_> = files.iter().chain(&again).flat_map(|file| sweeps(file)).collect();
    let joined = Swept::joined(&all).unwrap();
    let names: Vec<_> = joined.iter().map(|swept| swept.name.as_str()).collect();
    assert_eq!(
        names,
        ["loopback_2ranks", "10gbit_4ranks", "loopback_4ranks+loopback_4ranks", "loopback_4ranks"]
    );
    let [both, one, other] = [&joined[2], &all[2], &all[3]];
    for (((call, both), (_, one)), (_, other)) in both.fastest().zip(one.fastest()).zip(other.fastest()) {
        assert!(both > one.min(other) * 0.999, "{call:?}: {both} of {one} and {other}");
    }
    let surely =
        |swept: &Swept| judge(&Arc::new(swept.cautious(0.75)), Shown::NOTHING, &mut Own).unwrap().oracle;
    let [both, one, other] = [both, one, other].map(|swept| surely(swept));
    assert!(both > (one * other).sqrt(), "{both} of {one} and {other}");
}

/// What is known in hindsight is known of everything that the mask allows, and NCCL's own wins nothing over itself.
#[test]
fn hindsight_knows_every_choice() {
    let mut env = env("live-h200/loopback_4ranks.csv");
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(5), &mut seen).unwrap();
    let (mut slower, mut faster) = (0, 0);
    for _ in 0..200 {
        let question = env.question().expect("a call to decide");
        let own = Choice::of(&Knobs::OWN, question.gated.own.unwrap());
        let mut gains = vec![0.0; CHOICES];
        env.gains(&own, &mut gains).expect("something to choose");
        let at =
            |pair: usize, channels: usize| (pair * Head::Channels.size() + channels) * Head::Chunk.size();
        let mask = question.gated.mask;
        for pair in mask.indices(Head::Pair) {
            assert!(mask.indices(Head::Channels).all(|channels| gains[at(pair, channels)].is_finite()));
        }
        assert_eq!(gains[at(own.index(Head::Pair), 0)], 0.0);
        slower += gains.iter().filter(|gain| **gain < 0.0).count();
        faster += gains.iter().filter(|gain| **gain > 0.0).count();
        env.step(&Action { choice: own.0, exploratory: false }, &mut seen).unwrap();
    }
    assert!(slower > 200 && faster > 200, "{slower} choices are slower than NCCL's own, {faster} faster");
}

/// Measured times scatter as the file says, and the fastest is seen now and then.
#[test]
fn measured_times_scatter_around_the_true_one() {
    let mut env = env("live-h200/loopback_4ranks.csv");
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(5), &mut seen).unwrap();
    let (mut off, mut apart, mut calls) = (0.0, 0.0, 0.0);
    for _ in 0..900 {
        let own = Choice::of(&Knobs::OWN, env.question().unwrap().gated.own.unwrap());
        let info = env.step(&Action { choice: own.0, exploratory: false }, &mut seen).unwrap().info;
        let last = info.last.expect("a call has run");
        let log = (last.measured / last.ran.unwrap().micros).ln();
        (off, apart, calls) = (off + log, apart + log.abs(), calls + 1.0);
    }
    assert!((off / calls).abs() < 0.02, "biased by {}", off / calls);
    assert!(apart / calls > 0.02, "they hardly vary: {}", apart / calls);
}

#[test]
fn an_evaluation_says_that_it_measured_and_nobody_beats_the_oracle() {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 1, worlds: 1, threads: 2, constants: &constants, schedules: None };
    let entrants = [Entrant::oracle(), Entrant::tuner("own", |_| Box::new(Own))];
    let sweeps = sweeps("live-h200");
    let report =
        evaluation.sweeps("live-h200", &sweeps, Shown::NOTHING, &entrants, || Ok::<_, EnvError>(())).unwrap();
    assert!(!report.simulated);
    let [oracle, own] = [0, 1].map(|at| report.tuners[at].overall.clone().expect("nothing is held out"));
    assert_eq!((own.cells, own.speedup, own.worst_cell), (sweeps.iter().map(|s| s.len()).sum(), 1.0, 1.0));
    assert!(oracle.speedup > 1.1 && oracle.regret == 0.0, "{oracle:?}");
    for swept in &sweeps {
        let judged = judge(swept, Shown::NOTHING, &mut Own).unwrap();
        assert_eq!((judged.speedup, judged.headroom), (1.0, Some(0.0)), "{}", swept.name);
        eprintln!("{}: {} cells, oracle {:.3}", swept.name, swept.len(), judged.oracle);
    }
}
