//! Networks that change, for the real trainer: something is learned on them within seconds, and a run that was put away
//! goes on to the same bits.

use dynamiccl_agent::error::TrainError;
use dynamiccl_agent::learn::Device;
use dynamiccl_agent::subject::{Rails, Subject, Wan};
use dynamiccl_agent::training::{Setup, Training};
use dynamiccl_env::rails::RailsStage;
use dynamiccl_env::wan::WanCurriculum;
use dynamiccl_policies::network::Shape;
use dynamiccl_spec::features::HISTORY_WIDTH;

/// One job over and over, in traffic that lasts: enough to learn that rings and routes should follow it.
const ONE_JOB: &str = r#"
schema = 1
kind = "wan"
description = "the study's network in lasting traffic"
collectives = 200
networks = [{ gpus = [4, 4], routers = 2, weight = 1.0 }]
collective = { allgather = 1 }
chunk_mb = [32.0, 32.0]
delay_ms = [1.0, 1.0]
rho = ["0.95"]
rebuild_ms = [100.0, 100.0]
reroute_share = [0.05, 0.05]
lag = { 0 = 1 }
reference = "excess"
steps = 1_000_000

[agent]
network = { embedding = 16, memory = 8, expert = 16, resource = 8, critic = 32, table = false }
rollout = { environments = 32, steps = 32, discount = 0.95, trace = 0.95, held = 0.0, greedy = 0.0, calls = 200, refresh = 1 }
loss = { entropy = [0.01, 0.01], estimate = 0.0, gain = 0.0 }
optimiser = { rate = [5e-3, 5e-3], minibatches = 2, shards = 2 }
evaluation = { every = 1_000_000_000, worlds = 1 }
"#;

fn wan() -> Wan {
    Wan::new(WanCurriculum::parse("one_job", ONE_JOB).expect("a curriculum")).expect("settings of an agent")
}

/// The usual agent on rails, as small as a test is.
fn rails() -> Rails {
    let mut stage = RailsStage::builtin();
    let rollout = stage.agent["rollout"].as_table_mut().expect("a table");
    rollout.insert("environments".to_owned(), toml::Value::Integer(4));
    stage.job.pp = toml::Value::Array(vec![toml::Value::Integer(2)]).try_into().expect("a mix");
    Rails::new("rails", stage).expect("settings of an agent")
}

fn setup<S: Subject>(subject: S, threads: usize) -> Setup<S> {
    Setup { config: subject.usual(), subject, seed: 3, threads, device: Device::Flex }
}

fn step<S: Subject>(training: &mut Training<S>, updates: usize) {
    (0..updates).for_each(|_| drop(training.step().expect("an update")));
}

fn written<S: Subject>(training: &Training<S>) -> String {
    serde_json::to_string(&training.snapshot()).expect("plain numbers")
}

#[test]
fn a_few_thousand_steps_on_a_wan_beat_the_best_cadence() {
    let mut training = Training::new(setup(wan(), 2)).expect("a run that begins");
    let look = |training: &Training<Wan>| {
        let verdict = training.look(&training.weights(), 9, 2, |_| Ok::<_, TrainError>(()));
        verdict.expect("a judgement").cells[0]
    };
    let before = look(&training);
    step(&mut training, 40);
    let after = look(&training);
    assert!(before.learned > 1.4 * before.best_cadence, "it starts by changing nothing: {before:?}");
    assert!(after.learned < after.best_cadence, "{after:?}");
    assert!(after.learned >= after.clairvoyant, "{after:?}");
}

/// The weights by which the LSTM reads its own memory, which no normaliser is folded into.
fn recurrent<S: Subject>(training: &Training<S>) -> Vec<f32> {
    let weights = training.weights();
    let Shape { embedding, memory, .. } = weights.shape();
    weights.get("lstm.weight").expect("an LSTM")[(embedding + HISTORY_WIDTH) * 4 * memory..].to_vec()
}

fn learns_to_remember<S: Subject>(subject: S) {
    let mut training = Training::new(setup(subject, 2)).expect("a run that begins");
    let before = recurrent(&training);
    step(&mut training, 2);
    assert!(recurrent(&training) != before, "memory never reached a decision");
}

#[test]
fn memory_is_learned_although_no_row_says_that_it_was_measured() {
    learns_to_remember(wan());
    learns_to_remember(rails());
}

fn goes_on<S: Subject>(make: impl Fn() -> S) {
    let mut whole = Training::new(setup(make(), 1)).expect("a run that begins");
    step(&mut whole, 1);
    let saved = whole.snapshot();
    step(&mut whole, 1);
    let mut again = Training::resume(setup(make(), 2), saved).expect("it was put away whole");
    step(&mut again, 1);
    assert!(written(&whole) == written(&again));
}

#[test]
fn a_run_on_a_wan_goes_on_to_the_same_bits() {
    goes_on(wan);
}

#[test]
fn a_run_on_rails_goes_on_to_the_same_bits() {
    goes_on(rails);
}

/// What is judged in more worlds has another score, so the best policy of a run must have it before others are compared.
#[test]
fn the_best_policy_is_judged_anew_where_it_is_judged_otherwise() {
    let with_worlds = |worlds| {
        let mut setup = setup(wan(), 1);
        (setup.config.evaluation.every, setup.config.evaluation.worlds) = (1, worlds);
        setup
    };
    let mut training = Training::new(with_worlds(1)).expect("a run that begins");
    step(&mut training, 2);
    let before = training.best().expect("it was judged").clone();
    let mut again = Training::resume(with_worlds(2), training.snapshot()).expect("it was put away whole");
    assert_eq!(again.best().map(|best| best.score), Some(before.score));
    again.judge_best_anew(|| Ok::<_, TrainError>(())).expect("a judgement");
    let best = again.best().expect("it is still there").clone();
    assert_eq!((best.step, &best.weights), (before.step, &before.weights));
    assert_ne!(best.score, before.score);
    again.judge_best_anew(|| Ok::<_, TrainError>(())).expect("a judgement");
    assert_eq!(again.best().map(|best| best.score), Some(best.score));
}
