//! Folders of runs, checkpoints whole and broken, and the page that explains every key.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::random::Random;
use serde_json::Value;

use super::checkpoint::{CheckpointError, Saved, decode, encode, newest, write};
use super::clock::Utc;
use super::*;
use crate::config::Config;
use crate::subject::{Knobs, Subject};

fn settings() -> Settings {
    let curriculum = Curriculum::load("smoke").unwrap();
    let subject =
        Knobs { curriculum, constants: Arc::new(ConstantsFile::load("full").unwrap()), schedules: None };
    Settings {
        version: "0.1.0".to_owned(),
        started: Utc(1_794_738_790).to_string(),
        curriculum: "smoke".to_owned(),
        seed: 7,
        constants: ConstantsFile::USUAL.to_owned(),
        steps: None,
        device: USUAL_DEVICE.to_owned(),
        config: Config::default(),
        stages: subject.settings(),
    }
}

/// A checkpoint that holds nothing but a state.
fn saved_as<S>(step: u64, snapshot: S) -> Saved<S> {
    Saved { step, lines: 0, events: Vec::new(), seconds: 0.0, watched: [].into(), snapshot }
}

fn saved(step: u64) -> Saved<Vec<f32>> {
    let snapshot = (0..200).map(|at| at as f32 * 0.37 - step as f32).collect();
    let events = vec![("events".to_owned(), step)];
    let watched = [("tier1".to_owned(), 0.1)].into();
    Saved { step, lines: step / 2, events, seconds: 1.5, watched, snapshot }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_has_its_folder_and_nobody_else_writes_there() {
    let dir = tempfile::tempdir().unwrap();
    let run = Run::begin(dir.path(), settings(), Utc(1_794_738_790)).unwrap();
    let again = Run::begin(dir.path(), settings(), Utc(1_794_738_790)).unwrap();
    assert_eq!(names(dir.path()), ["smoke__s7__20261115T103310Z", "smoke__s7__20261115T103310Z-2"]);
    assert_eq!(names(run.folder()), [".lock", CHECKPOINTS, SETTINGS]);
    assert!(matches!(Run::open(run.folder()), Err(RunError::Busy { .. })));
    let folder = run.folder().to_owned();
    drop((run, again));
    assert_eq!(Run::open(&folder).unwrap().settings(), &settings());
    assert!(matches!(Run::open(dir.path()), Err(RunError::NoRun { .. })));
    assert!(matches!(policy_of(&folder), Err(RunError::NoPolicy { .. })));
}

#[test]
fn the_latest_run_is_the_one_that_was_begun_last() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Run::latest(dir.path()), Err(RunError::NoRuns { .. })));
    for (seed, second) in [(1, 30), (9, 50), (2, 40)] {
        let started = Utc(1_794_738_000 + second);
        let settings = Settings { seed, started: started.to_string(), ..settings() };
        Run::begin(dir.path(), settings, started).unwrap();
    }
    assert!(Run::latest(dir.path()).unwrap().ends_with("smoke__s9__20261115T102050Z"));
    // A run of another build is no reason to go on with an older one; one that is older is none not to.
    let foreign = |name: &str| {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join(SETTINGS), "shape = 9").unwrap();
        Run::latest(dir.path())
    };
    assert!(foreign("smoke__s3__20261115T102035Z").unwrap().ends_with("smoke__s9__20261115T102050Z"));
    let error = foreign("smoke__s4__20261115T102055Z").unwrap_err();
    assert!(
        matches!(&error, RunError::Settings { path, .. } if path.ends_with("smoke__s4__20261115T102055Z/config.toml"))
    );
}

#[test]
fn the_last_checkpoints_stay_and_the_newest_whole_one_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let run = Run::begin(dir.path(), settings(), Utc(0)).unwrap();
    assert!(matches!(run.resume::<Vec<f32>>(), Err(RunError::NoCheckpoint { .. })));
    for step in [900, 1000, 1100, 20_000] {
        run.save(&saved(step)).unwrap();
    }
    let folder = run.path(CHECKPOINTS);
    assert_eq!(names(&folder), ["step-1000.ckpt", "step-1100.ckpt", "step-20000.ckpt"]);
    let newest = folder.join("step-20000.ckpt");
    let half = fs::read(&newest).unwrap();
    fs::write(&newest, &half[..half.len() / 2]).unwrap();
    let resumed = run.resume::<Vec<f32>>().unwrap();
    assert_eq!(resumed.saved, saved(1100));
    assert!(resumed.broken[0].to_string().contains("step-20000.ckpt: it has "), "{:?}", resumed.broken);
    assert_eq!(names(&folder), ["step-1000.ckpt", "step-1100.ckpt", "step-20000.ckpt.broken"]);
    assert!(run.resume::<Vec<f32>>().unwrap().broken.is_empty());
    // One of another build is whole: who can read it shall.
    let mut other = encode(&saved(30_000)).unwrap();
    other[8] = 2;
    fs::write(folder.join("step-30000.ckpt"), other).unwrap();
    let error = run.resume::<Vec<f32>>().unwrap_err().to_string();
    assert!(
        error.contains("step-30000.ckpt: ") && error.ends_with("use the dynamiccl that wrote it"),
        "{error}"
    );
    assert!(folder.join("step-30000.ckpt").exists());
}

#[test]
fn every_way_in_which_a_checkpoint_can_be_wrong_has_its_error() {
    let good = encode(&saved(5)).unwrap();
    assert_eq!(decode::<Vec<f32>>(&good).unwrap(), saved(5));
    let wrong = |bytes: &[u8]| decode::<Vec<f32>>(bytes).unwrap_err();
    assert!(matches!(wrong(b""), CheckpointError::Length { found: 0, .. }));
    assert!(matches!(wrong(b"{\"a\": 1}"), CheckpointError::Foreign));
    for length in 8..good.len() {
        assert!(matches!(wrong(&good[..length]), CheckpointError::Length { .. }), "{length}");
    }
    let appended = [&good[..], b"x"].concat();
    assert!(matches!(wrong(&appended), CheckpointError::Length { .. }));
    let mut other = good.clone();
    other[8] = 2;
    assert!(matches!(wrong(&other), CheckpointError::Version { found: 2 }));
    let of_words = saved_as(5, "words");
    assert!(matches!(wrong(&encode(&of_words).unwrap()), CheckpointError::Content(_)));
}

#[test]
fn no_mutated_checkpoint_is_taken_for_whole() {
    let good = encode(&saved(5)).unwrap();
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        if bytes != good {
            assert!(decode::<Vec<f32>>(&bytes).is_err());
        }
    }
}

#[test]
fn a_write_that_fails_midway_leaves_the_last_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &saved(1), 3).unwrap();
    /// A state whose second half cannot be written.
    struct Half;
    impl Serialize for Half {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no more"))
        }
    }
    let half = saved_as(2, Half);
    assert!(matches!(write(dir.path(), &half, 3), Err(RunError::Checkpoint { .. })));
    // A folder where the file should be: the rename fails.
    fs::create_dir(dir.path().join("step-2.ckpt")).unwrap();
    assert!(matches!(write(dir.path(), &saved(2), 3), Err(RunError::Write { .. })));
    fs::remove_dir(dir.path().join("step-2.ckpt")).unwrap();
    assert_eq!(names(dir.path()), ["step-1.ckpt"]);
    assert_eq!(newest::<Vec<f32>>(dir.path()).unwrap().0, Some(saved(1)));
}

#[test]
fn event_files_are_cut_back_to_what_counts() {
    let dir = tempfile::tempdir().unwrap();
    let board = board::Board::create(dir.path(), 0, Vec::new()).unwrap();
    let files = board.files();
    let first = dir.path().join(&files[0].0);
    assert_eq!((files.len(), files[0].1), (1, fs::metadata(&first).unwrap().len()));
    let whole = fs::read(&first).unwrap();
    fs::write(&first, [&whole[..], b"what was written after the checkpoint"].concat()).unwrap();
    fs::write(dir.path().join("events.out.tfevents.9999999999.0007.dynamiccl"), "of a later start").unwrap();
    fs::write(dir.path().join("notes.txt"), "a user's own").unwrap();
    let again = board::Board::create(dir.path(), 64, files.clone()).unwrap();
    assert!(fs::read(&first).unwrap() == whole);
    let kept: Vec<String> = again.sync().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names(dir.path()), [&kept[..], &["notes.txt".to_owned()]].concat());
    assert_eq!(kept.len(), 2);
    // What a power cut has taken does not come back as zeros.
    fs::write(&first, &whole[..9]).unwrap();
    board::Board::create(dir.path(), 64, files).unwrap();
    assert_eq!(fs::read(&first).unwrap(), &whole[..9]);
}

/// The words in backticks that begin the rows of the tables of a section of `docs/metrics.md`.
fn documented(section: &str) -> BTreeSet<String> {
    let page = include_str!("../../../docs/metrics.md");
    let (_, rest) = page.split_once(&format!("## {section}\n")).expect("a section of the page");
    let rows = rest.split("\n## ").next().unwrap_or_default().lines();
    let keys = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
    keys.flat_map(|keys| keys.split(", "))
        .filter_map(|key| key.strip_prefix('`')?.strip_suffix('`'))
        .map(str::to_owned)
        .collect()
}

mod documented_keys {
    use dynamiccl_env::evaluate::Report;
    use dynamiccl_env::evaluate::{Figures, Kind, Paths, Place, TierReport, TunerReport};
    use dynamiccl_spec::{Collective, Head};
    use protobuf::Message;
    use tensorboard_proto::event::Event;

    use super::super::board::Board;
    use super::super::line::{Line, Stand};
    use super::*;
    use crate::learn::Losses;
    use crate::progress::{Episodes, Seconds, Update};
    use crate::subject::map::Image;
    use crate::subject::{RailsCell, RailsVerdict, Verdict, WanCell, WanVerdict};

    fn update() -> Update {
        Update {
            step: 4096,
            update: 1,
            stage: 0,
            stage_step: 4096,
            rate: 1e-3,
            losses: Losses::default(),
            gradient: 0.1,
            explained_variance: 0.5,
            epochs: 2,
            episodes: Some(Episodes { count: 3, mean_return: 0.1, mean_length: 200.0 }),
            terms: [0.0; 8],
            gain: 0.01,
            decided: 0.9,
            choices: std::array::from_fn(|head| vec![head as u32; Head::ALL[head].size()]),
            gates: Default::default(),
            seconds: Seconds::default(),
        }
    }

    fn report() -> Report {
        let worst_at =
            Place { cluster: "a".to_owned(), nodes: 1, collective: Collective::AllReduce, bytes: 1 };
        let figures = Figures {
            cells: 1,
            speedup: 1.1,
            speedup_std: None,
            regret: 0.05,
            regret_hold: 0.06,
            worst_cell: 0.99,
            worst_at,
            fallback_share: 0.0,
            distinct_knobs: 4,
            coverage: None,
            cumulative: [].into(),
            cumulative_episodes: 0,
            paths: Paths { cells: 0, agreement: None, unrunnable: 0 },
        };
        let tiers = (1..=4).map(|tier| TierReport { tier, figures: figures.clone() }).collect();
        let tuner = TunerReport {
            name: "policy".to_owned(),
            kind: Kind::Tuner,
            tiers,
            held_out: None,
            overall: Some(figures),
            curves: Vec::new(),
            held_out_curves: Vec::new(),
        };
        Report {
            simulated: true,
            workload: "cells".to_owned(),
            seeds: 1,
            worlds: 2,
            episodes: 4,
            tuners: vec![tuner],
            cells: Vec::new(),
        }
    }

    /// The events of a file.
    fn events(mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
            let (record, rest) = rest[4..].split_at(u64::from_le_bytes(*length) as usize);
            events.push(Event::parse_from_bytes(record).expect("an event"));
            bytes = &rest[4..];
        }
        events
    }

    /// Names of tiers, heads, terms and gates stand for themselves; those of machines for any.
    #[test]
    fn the_page_explains_every_tag_and_no_other() {
        let mut bytes = Vec::new();
        let mut board = Board::new(&mut bytes, Path::new("x"), 0).unwrap();
        board.update(&update(), 1000.0).unwrap();
        board.judged(4096, &report().figures(), 2.0).unwrap();
        let image = Image { tag: "maps/<machine>".to_owned(), side: 2, rgb: vec![0; 12] };
        board.image(4096, &image).unwrap();
        drop(board);
        let events = events(&bytes);
        let written: BTreeSet<String> = events
            .iter()
            .flat_map(|event| event.get_summary().get_value().iter().map(|value| value.get_tag().to_owned()))
            .collect();
        assert_eq!(written, documented("TensorBoard"));
        assert!(events.iter().any(|event| event.has_session_log()));
    }

    /// Runs on networks that change have figures of their own, and nothing else that others have not.
    #[test]
    fn the_page_explains_the_figures_of_networks_that_change() {
        let wan = WanVerdict { cells: vec![WanCell { rho: 0.95, ..WanCell::default() }] }.figures();
        let rails = RailsVerdict { cells: vec![RailsCell { pp: 4, ..RailsCell::default() }] }.figures();
        assert_eq!(wan["learned_ms"].keys().collect::<Vec<_>>(), ["all", "rho0.95"]);
        assert_eq!(rails["increase"].keys().collect::<Vec<_>>(), ["all", "pp4"]);
        let names = wan.keys().chain(rails.keys()).map(|&name| name.to_owned());
        assert_eq!(names.collect::<BTreeSet<_>>(), documented("Networks that change"));
    }

    fn keys(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            let name = format!("{prefix}{key}");
            match value.is_object() {
                true => keys(&format!("{name}."), value, found),
                false => drop(found.insert(name)),
            }
        }
    }

    #[test]
    fn the_page_explains_every_field_and_no_other() {
        let regret = [("tier1", 0.1), ("tier2", 0.1), ("tier3", 0.1), ("tier4", 0.1), ("all", 0.1)];
        let regret = regret.map(|(name, value)| (name.to_owned(), value)).into();
        let stand = Stand {
            step: 4096,
            stage: "smoke".to_owned(),
            seconds: 4.0,
            sps: 1000.0,
            watched: [(Knobs::WATCHED, regret)].into(),
        };
        let mut figures = report().figures();
        figures.remove(Knobs::WATCHED);
        let mut found = BTreeSet::new();
        for line in [
            Line::update(stand.clone(), &update()),
            Line::eval(stand.clone(), figures, true, 2.0),
            Line::promotion(stand, "stage1".to_owned(), true),
        ] {
            keys("", &serde_json::from_str(&line.to_json()).unwrap(), &mut found);
        }
        assert_eq!(found, documented("metrics.jsonl"));
    }
}
