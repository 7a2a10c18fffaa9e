//! The shipped curricula, and files that are wrong.

use std::collections::BTreeSet;
use std::sync::Arc;

use dynamiccl_env::curriculum::{Curriculum, Stage};
use dynamiccl_env::gym::{Env, Observation, RandomActor};
use dynamiccl_env::job::{Job, Source};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_spec::{Compression, Parallelism, SyncMode};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const HELD_OUT: [&str; 6] =
    ["dgx2_v100", "aws_p5en", "hgx_b200", "ib400g_1gpu", "a100_8_tcp100g", "tcp10g_1gpu"];

fn stage(name: &str) -> Arc<Stage> {
    Curriculum::load(name).unwrap().stages[0].clone()
}

fn jobs(name: &str) -> Vec<Job> {
    let (stage, mut rng) = (stage(name), ChaCha8Rng::seed_from_u64(1));
    (0..2000).map(|_| Job::draw(&stage, &mut rng).unwrap()).collect()
}

#[test]
fn full_is_the_three_stages_in_turn() {
    let stages: Vec<_> = Curriculum::load("full").unwrap().stages.iter().map(|s| s.name.clone()).collect();
    assert_eq!(stages, ["stage1", "stage2", "stage3"]);
}

#[test]
fn a_row_stretches_or_shrinks_its_stages() {
    let own: Vec<_> = ["stage1", "stage2", "stage3"].map(|name| stage(name).file.promotion).to_vec();
    for (row, times) in [("full", 2.5), ("short", 0.1)] {
        for (stage, own) in Curriculum::load(row).unwrap().stages.iter().zip(&own) {
            let promotion = stage.file.promotion;
            let wanted = [own.min_steps, own.max_steps].map(|steps| (steps as f64 * times) as u64);
            assert_eq!([promotion.min_steps, promotion.max_steps], wanted, "{row}");
            assert_eq!(promotion.regret, own.regret, "{row}: the bar is the same");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for times in ["0.0", "-1.0", "nan", "101.0"] {
        let file = folder.path().join("row.toml");
        let text = format!("schema = 1\ndescription = \"a row\"\nstages = [\"stage1\"]\nsteps = {times}\n");
        std::fs::write(&file, text).unwrap();
        let error = Curriculum::load(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("steps = ") && error.contains("above 0, at most 100"), "{times}: {error}");
    }
}

#[test]
fn held_out_machines_are_in_no_curriculum() {
    for name in Curriculum::names() {
        for stage in Curriculum::load(name).unwrap().stages {
            let used: Vec<_> = stage.file.clusters.iter().map(|machines| machines.name.as_str()).collect();
            assert!(HELD_OUT.iter().all(|held| !used.contains(held)), "{name}: {used:?}");
        }
    }
}

#[test]
fn stages_hold_what_they_promise() {
    let tiers =
        |jobs: &[Job]| -> BTreeSet<u8> { jobs.iter().map(|job| job.cluster.tier(job.nodes)).collect() };
    let recipes = |jobs: &[Job]| -> Vec<_> {
        let training = jobs.iter().filter_map(|job| match &job.source {
            Source::Training { recipe, .. } => Some((**recipe).clone()),
            _ => None,
        });
        training.collect()
    };
    let [one, two, three] = ["stage1", "stage2", "stage3"].map(jobs);
    assert_eq!(tiers(&one), BTreeSet::from([1]));
    assert_eq!(tiers(&two), BTreeSet::from([1, 2]));
    assert_eq!(tiers(&three), BTreeSet::from([1, 2, 3, 4]));
    assert!(recipes(&one).iter().all(|r| r.sync == SyncMode::Bsp && r.compression == Compression::None));
    assert!(recipes(&two).iter().any(|r| r.sync == SyncMode::Local));
    assert!(recipes(&two).iter().any(|r| r.layout.pp > 1));
    let kinds: BTreeSet<_> = recipes(&three).iter().map(|r| r.layout.parallelism().id()).collect();
    assert!(kinds.contains(&Parallelism::ThreeD.id()) && kinds.contains(&Parallelism::Moe.id()));
    assert!(three.iter().any(|job| job.setting.in_network == Some(true)));
    assert!(recipes(&three).iter().any(|r| r.compression == Compression::Combined));
}

/// Sync mode and tau change within a job, and the observation shows it.
#[test]
fn sync_mode_and_tau_change_within_a_job() {
    let mut restless = (*stage("stage2")).clone();
    restless.file.regime.sync_change = 1.0;
    restless.file.workload.benchmark = 0.0;
    (restless.file.hidden.context, restless.file.hidden.block) = (0.0, 0.0);
    (restless.file.replay.share, restless.file.workload.iterations) = (0.0, 10_000);
    let mut env = SimEnv::new(Arc::new(restless), Arc::new(ConstantsFile::full()));
    let mut observation = Observation::new(env.spaces());
    let mut changed = 0;
    for seed in 0..8 {
        let mut actor = RandomActor::new(seed);
        env.reset(Some(seed), &mut observation).unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..900 {
            let numbers =
                |name| &observation.context[dynamiccl_spec::features::catalogue::slot(name).unwrap()];
            seen.insert(format!("{:?} {:?}", numbers("sync_mode"), numbers("local_tau")));
            let step = env.step(&actor.act(&observation), &mut observation).unwrap();
            if step.terminated || step.truncated {
                break;
            }
        }
        changed += usize::from(seen.len() > 1);
    }
    assert!(changed >= 4, "sync mode or tau changed in {changed} of 8 jobs");
}

#[test]
fn sparse_gradients_are_advised_about() {
    let mut sparse = (*stage("stage3")).clone();
    sparse.file.regime.compression =
        toml::from_str::<std::collections::HashMap<String, _>>("mix = [\"top_k\"]")
            .unwrap()
            .remove("mix")
            .unwrap();
    sparse.file.workload.benchmark = 0.0;
    sparse.file.replay.share = 0.0;
    let mut env = SimEnv::new(Arc::new(sparse), Arc::new(ConstantsFile::full()));
    let mut observation = Observation::new(env.spaces());
    let (mut actor, mut advised) = (RandomActor::new(1), 0);
    for seed in 0..6 {
        env.reset(Some(seed), &mut observation).unwrap();
        for _ in 0..300 {
            let step = env.step(&actor.act(&observation), &mut observation).unwrap();
            advised += step.info.advice.sparse_library;
            if step.terminated || step.truncated {
                break;
            }
        }
    }
    assert!(advised > 0);
}

#[test]
fn a_wrong_file_is_refused_with_place_value_and_remedy() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../curricula/stage1.toml")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let wrong = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let file = dir.path().join("mine.toml");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let error = Curriculum::load(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(!error.contains('\n') && error.contains("mine.toml"), "{error}");
        error
    };
    assert!(wrong("calls = 1000", "calls = 0").contains("workload.calls = 0: give 1 to 1048576"));
    assert!(wrong("sync = [\"bsp\"]", "sync = [\"bspp\"]").contains("did you mean \"bsp\"?"));
    assert!(wrong("switch = 0.005", "swich = 0.005").contains("swich"));
    assert!(wrong("tiers = [1]", "tiers = [9]").contains("from 0 to 4"));
    assert!(wrong("tiers = [1]", "tiers = [4]").contains("no cluster and node count is of these tiers"));
    assert!(wrong("tau = [1]", "tau = [65]").contains("give 1 to 64"));
    assert!(wrong("\"dgx_h100\"", "\"dgx_h10\"").contains("dgx_h100"));
    let at = |tier: u8, nodes: u8| wrong("nodes = [1]", &format!("nodes = [{nodes}], at_tier = {tier}"));
    assert!(at(5, 2).contains("clusters.at_tier = 5: give a tier from 2 to 4"));
    assert!(at(3, 1).contains("clusters.at_tier = 3: give only node counts above 1"));
    assert!(wrong("\"bert_large\"", "\"bert_larg\"").contains("did you mean \"bert_large\"?"));
    assert!(wrong("staleness = [1, 4]", "staleness = [4, 1]").contains("hidden.staleness = [4, 1]"));
    assert!(wrong("schema = 1", "schema = 7").contains("reads schema 1"));
    assert!(wrong("clip = 10.0", "clip = \"x\"").contains("mine.toml:"));
    assert!(Curriculum::load("stag1").unwrap_err().to_string().contains("did you mean \"stage1\"?"));
    assert!(Curriculum::load("none.toml").unwrap_err().to_string().starts_with("none.toml: "));
}

/// The README names every key.
#[test]
fn the_readme_explains_every_key() {
    fn keys(table: &toml::Table, found: &mut BTreeSet<String>) {
        for (key, value) in table {
            found.insert(key.clone());
            match value {
                toml::Value::Table(inner)
                    if ["workload", "regime", "dynamics", "hidden", "reward", "promotion", "replay"]
                        .contains(&key.as_str()) =>
                {
                    keys(inner, found);
                }
                toml::Value::Array(items) => {
                    items.iter().filter_map(|item| item.as_table()).for_each(|t| keys(t, found));
                }
                _ => {}
            }
        }
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../curricula/");
    let page = std::fs::read_to_string(format!("{folder}README.md")).unwrap();
    let mut found = BTreeSet::new();
    for name in Curriculum::names() {
        let text = std::fs::read_to_string(format!("{folder}{name}.toml")).unwrap();
        keys(&text.parse().unwrap(), &mut found);
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    let named = |key: &&String| page.contains(&format!("`{key}`")) || page.contains(&format!("`[{key}]`"));
    let missing: Vec<_> = found.iter().filter(|key| !named(key)).collect();
    assert!(missing.is_empty(), "curricula/README.md says nothing about {missing:?}");
}

/// A stage that replays itself is read once, not for ever.
#[test]
fn a_stage_may_replay_itself() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../curricula/smoke.toml")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    let name = file.to_str().unwrap();
    std::fs::write(&file, format!("{text}\n[replay]\nshare = 0.5\nstages = [{name:?}]\n")).unwrap();
    let stage = Curriculum::load(name).unwrap().stages[0].clone();
    assert_eq!((stage.replay.len(), stage.replay[0].replay.len()), (1, 0));
}
