//! What must hold whatever the constants are, and every figure worked out by hand once.

use std::collections::BTreeMap;
use std::sync::Arc;

use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::math::ln;
use dynamiccl_spec::{
    Algorithm, ChannelChoice, Choice, Collective, CostTable, Decision, Gates, Head, JobContext, Knobs,
    Measure, Measured, Pair, Protocol, Query, Reason, Tuner,
};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::calls::{Calls, Outcome, Pick, Timed, Trial, play};
use super::gathered::{Cell, Gathered};
use super::judge::{CellTally, Counts, EpisodeTally, Judge, Logs, Tally, WARM_UP};
use super::*;
use crate::cluster::Cluster;
use crate::curriculum::Dynamics;
use crate::nccl::Realised;
use crate::question::Question;

const RING: Pair = Pair::new(Algorithm::Ring, Protocol::Simple);

/// A tuner that always wants the same.
struct Wants(Knobs);

impl Tuner for Wants {
    fn name(&self) -> &str {
        "wants"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        let knobs = if self.0 == Knobs::OWN { query.own() } else { self.0 };
        Decision::chosen(query, knobs)
    }
}

/// An entrant that does.
pub(super) fn wants(name: &str, knobs: Knobs) -> Entrant {
    Entrant::tuner(name, move |_| Box::new(Wants(knobs)))
}

fn ring(channels: u8) -> Knobs {
    Knobs::with_pair(RING, ChannelChoice::of(channels).unwrap())
}

fn entrants() -> Vec<Entrant> {
    vec![
        wants("nccl", Knobs::OWN),
        Entrant::oracle(),
        Entrant::bayes(),
        wants("ring", ring(0)),
        wants("narrow", ring(2)),
    ]
}

fn evaluated(threads: usize) -> Report {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 2, worlds: 2, threads, constants: &constants, schedules: None };
    let clusters = ["dgx_a100", "tcp10g_1gpu"].map(str::to_owned);
    let machines = Machine::list(&clusters, &[1, 2], &[1, 2, 3, 4]).unwrap();
    let step = || Ok::<(), ClusterError>(());
    evaluation.cells(&machines, &[1 << 12, 1 << 20, 1 << 26], &entrants(), step).unwrap()
}

#[test]
fn nccl_is_one_the_oracle_is_best_and_nothing_fixed_beats_bayes() {
    let report = evaluated(1);
    let figures: Vec<&Figures> = report.tuners.iter().map(|tuner| tuner.overall.as_ref().unwrap()).collect();
    let [nccl, oracle, bayes, ..] = figures[..] else { panic!("five tuners") };
    assert_eq!((nccl.speedup, nccl.speedup_std, nccl.worst_cell), (1.0, Some(0.0), 1.0));
    assert!(nccl.cumulative.values().all(|&ratio| ratio == 1.0) && nccl.cumulative.len() == MARKS.len());
    assert_eq!((oracle.regret, oracle.regret_hold), (0.0, 0.0));
    assert!((nccl.regret - (oracle.speedup - 1.0)).abs() < 1e-9, "{} {}", nccl.regret, oracle.speedup);
    assert!(bayes.speedup > 1.0 && bayes.speedup < oracle.speedup);
    for (at, cell) in report.cells.iter().enumerate() {
        let regrets: Vec<[f64; 2]> =
            cell.tuners.iter().flatten().map(|t| [t.regret, t.regret_hold.unwrap()]).collect();
        assert_eq!(regrets.len(), figures.len());
        for regret in &regrets {
            assert!(regret.iter().zip(regrets[1]).all(|(any, oracle)| *any >= oracle), "{cell:?}");
        }
        // A choice that never changes is judged alike with feedback and without; bayes is the best of them.
        for fixed in [0, 2, 3, 4] {
            assert!((regrets[fixed][0] - regrets[fixed][1]).abs() < 1e-9, "{at} {fixed}");
            assert!(regrets[fixed][0] >= regrets[2][0] - 1e-9, "{at} {fixed}: {regrets:?}");
        }
    }
}

#[test]
fn held_out_clusters_are_apart() {
    let report = evaluated(1);
    let tuner = &report.tuners[0];
    assert_eq!(tuner.tiers.iter().map(|tier| tier.tier).collect::<Vec<_>>(), [1, 2]);
    let cells = |figures: &Option<Figures>| figures.as_ref().unwrap().cells;
    assert_eq!((cells(&tuner.overall), cells(&tuner.held_out)), (30, 15));
    assert!(report.cells.iter().all(|cell| cell.held_out == (cell.place.cluster == "tcp10g_1gpu")));
    assert_eq!(report.episodes, 3 * 2 * 2 * 5);
    assert!(tuner.curves.iter().all(|point| point.speedup == 1.0) && tuner.curves.len() == 30);
}

#[test]
fn threads_change_nothing() {
    assert_eq!(evaluated(1), evaluated(3));
}

#[test]
fn an_interruption_ends_the_work() {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 1, worlds: 2, threads: 2, constants: &constants, schedules: None };
    let machines = Machine::list(&["dgx_a100".to_owned()], &[1, 2], &[1, 2]).unwrap();
    let stop =
        || Err(ClusterError::Communicator { cluster: "x".into(), wanted: "x".into(), remedy: "x".into() });
    assert!(evaluation.cells(&machines, &[1 << 20], &entrants(), stop).is_err());
}

/// Jobs of the smallest curriculum: NCCL is one and the oracle has no regret there, too.
#[test]
fn jobs_are_judged_by_the_same_yardstick() {
    let constants = Arc::new(ConstantsFile::full());
    let evaluation =
        Evaluation { seed: 3, seeds: 1, worlds: 2, threads: 1, constants: &constants, schedules: None };
    let stages = crate::curriculum::Curriculum::load("smoke").unwrap().stages;
    let make = || SimEnv::mixed(stages.iter().cloned(), Arc::clone(&constants));
    let judged = |entrants: &[Entrant]| {
        evaluation.jobs("smoke", make, &[0, 1, 2, 3, 4], entrants, || Ok::<(), EnvError>(()))
    };
    let two = [wants("nccl", Knobs::OWN), Entrant::oracle()];
    let report = judged(&two).unwrap();
    let figures: Vec<&Figures> = report.tuners.iter().map(|t| t.verdict().unwrap()).collect();
    assert_eq!((figures[0].speedup, figures[0].worst_cell), (1.0, 1.0));
    assert_eq!((figures[1].regret, figures[1].regret_hold), (0.0, 0.0));
    assert!(figures[1].speedup > 1.0 && figures[1].cells == figures[0].cells);
    assert_eq!(figures[0].speedup_std, None);
    assert!(judged(&[Entrant::bayes()]).unwrap_err().to_string().contains("leave it out"));
}

/// Draws every knob from what is legal, threads too.
struct Dice(ChaCha8Rng);

impl Tuner for Dice {
    fn name(&self) -> &str {
        "dice"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        let mut choice = Choice::default();
        for &head in Head::ALL {
            let legal: Vec<usize> = query.gated.mask.indices(head).collect();
            choice.0[head as usize] = legal[self.0.random_range(0..legal.len())] as u8;
        }
        Decision::chosen(query, choice.knobs().unwrap())
    }
}

/// In weather that never changes all tuners meet the same calls, so what each has gained and what it has left
/// are together what the oracle gains, whatever threads a tuner has bound itself to.
#[test]
fn in_steady_weather_what_a_tuner_gains_and_leaves_is_what_the_oracle_gains() {
    let constants = Arc::new(ConstantsFile::full());
    let evaluation =
        Evaluation { seed: 7, seeds: 1, worlds: 3, threads: 1, constants: &constants, schedules: None };
    let mut stage = (*crate::curriculum::Curriculum::load("smoke").unwrap().stages[0]).clone();
    let still = Dynamics { congestion: 0.3, ..Dynamics::STILL };
    stage.file.dynamics = still;
    stage.replay.clear();
    let stage = Arc::new(stage);
    let make = || SimEnv::new(Arc::clone(&stage), Arc::clone(&constants));
    let dice = Entrant::tuner("dice", |seed| Box::new(Dice(ChaCha8Rng::seed_from_u64(seed))));
    let entrants = [Entrant::oracle(), dice, wants("nccl", Knobs::OWN)];
    let step = || Ok::<(), EnvError>(());
    let report = evaluation.jobs("smoke", make, &[0, 1, 2, 3, 4], &entrants, step).unwrap();
    let figures: Vec<&Figures> = report.tuners.iter().map(|tuner| tuner.verdict().unwrap()).collect();
    assert!(figures[0].regret == 0.0 && figures[1].regret > 0.05 && figures[1].distinct_knobs > 3);
    for cell in &report.cells {
        let [oracle, dice, nccl] = [0, 1, 2].map(|at| cell.tuners[at].as_ref());
        for figures in [dice, nccl].into_iter().flatten() {
            let ceiling = figures.speedup * (1.0 + figures.regret);
            assert!((ceiling / oracle.unwrap().speedup - 1.0).abs() < 1e-9, "{cell:?}");
        }
    }
}

fn timed(micros: f64) -> Timed {
    Timed { micros, log: ln(micros) }
}

/// Calls of two kinds in turn; NCCL's own takes 8 µs, with eight channels 4 µs, with one 16 µs, and the best is 2.
struct Script {
    left: u32,
    question: Question,
    chosen: Vec<Knobs>,
}

impl Script {
    fn new(calls: u32) -> Self {
        let mut table = CostTable::default();
        table.set(RING, 20.0);
        let collective = Collective::AllReduce;
        let gated = Gates::default().narrow(collective, &table);
        let call = CallContext {
            collective,
            bytes: 1 << 20,
            pipelined: 1,
            table,
            pairs: gated.mask.pairs(),
            synthesised: None,
        };
        let (encoder, past) = (Arc::new(Encoder::new(&JobContext::default())), PastCall::default());
        let question = Question { communicator: 0, ranks: 16, nodes: 2, encoder, call, gated, past };
        Script { left: calls, question, chosen: Vec::new() }
    }
}

impl Calls for Script {
    fn next(&mut self) -> Option<Question> {
        (self.left > 0).then(|| self.question.clone())
    }

    fn choose(&mut self, knobs: &Knobs) -> Pick {
        let legal = knobs.pair.is_some_and(|pair| self.question.call.table.get(pair).is_some());
        self.chosen.push(if legal { *knobs } else { Knobs::OWN });
        Pick { choice: if legal { knobs.channels.requested().unwrap_or(0) as usize } else { 0 }, legal }
    }

    fn fastest(&mut self) -> usize {
        2
    }

    fn attempt(&mut self, knobs: &Knobs) -> Option<Trial> {
        knobs.pair.map(|_| Trial { measured: 7.0, micros: 40.0 })
    }

    fn run(&mut self, choice: usize) -> Outcome {
        self.left -= 1;
        let micros = match choice {
            8 => 4.0,
            1 => 16.0,
            _ => 8.0,
        };
        Outcome {
            cell: (self.left % 2) as usize,
            ran: choice,
            knobs: self.chosen[self.chosen.len() - 1],
            truth: timed(micros),
            own: timed(8.0),
            best: timed(2.0),
            measured: 1.5 * micros,
            told: self.left.is_multiple_of(2),
        }
    }
}

/// Tries once at its first call, and counts what it is told. Its estimates are within a spread of every other
/// call.
#[derive(Default)]
struct Curious {
    asked: u32,
    tried: Option<f64>,
    told: Vec<Measured>,
}

impl Tuner for Curious {
    fn name(&self) -> &str {
        "curious"
    }

    fn decide(&mut self, query: &Query<'_>, measure: &mut Measure<'_>) -> Decision {
        if self.asked == 0 {
            assert_eq!(measure(&Knobs::OWN), None);
            self.tried = measure(&ring(4));
        }
        self.asked += 1;
        let mut micros = CostTable::default();
        // Measured are 6 µs with eight channels.
        micros.set(RING, if self.asked.is_multiple_of(2) { 6.5 } else { 9.0 });
        let reason = if self.asked.is_multiple_of(4) {
            Reason::Fallback(dynamiccl_spec::Fallback::Unsure)
        } else {
            Reason::Policy
        };
        Decision { micros, reason, spread: Some(0.1), ..Decision::chosen(query, ring(8)) }
    }

    fn learn(&mut self, _: &Query<'_>, measured: &Measured) {
        self.told.push(*measured);
    }
}

fn report_of(tallies: Vec<Tally>) -> TunerReport {
    let realised = Realised { pair: RING, max_channels: 8, channels: 8, threads: 512, chunk_bytes: 1 };
    let choice = |channels: u8| (Choice([0, RING.index() as u8, channels, 0, 0]), realised);
    let cell = |collective| Cell {
        place: Place { cluster: "made_up".to_owned(), nodes: 2, collective, bytes: 1 << 20 },
        tier: 2,
        held_out: false,
        own: 0,
        fastest: vec![0.0; 9],
        logs: Vec::new(),
        choices: (0..9).map(choice).collect(),
    };
    let cells = vec![cell(Collective::AllReduce), cell(Collective::AllGather)];
    summary::tuner("made_up", Kind::Tuner, 0, &[Gathered { cells, players: vec![tallies] }])
}

#[test]
fn an_episode_worked_out_by_hand() {
    let mut tally = Tally::default();
    let mut curious = Curious::default();
    let mut judge = Judge::new(&mut tally, false);
    play(&mut Script::new(200), &mut curious, false, &mut judge);
    judge.finish(2, false);
    // Every other call was told, and those after the first 50 are judged.
    assert_eq!(curious.told.len(), 100);
    assert_eq!(curious.told[0], Measured { knobs: ring(8), micros: 6.0 });
    let mut judge = Judge::new(&mut tally, true);
    play(&mut Script::new(60), &mut Wants(ring(1)), true, &mut judge);
    judge.finish(2, false);
    let figures = report_of(vec![tally]).overall.unwrap();
    assert_eq!((figures.cells, figures.distinct_knobs), (2, 1));
    assert!((figures.speedup - 2.0).abs() < 1e-12 && (figures.regret - 1.0).abs() < 1e-12);
    // Without feedback it was another tuner, with 16 µs.
    assert!((figures.worst_cell - 2.0).abs() < 1e-12 && (figures.regret_hold - 7.0).abs() < 1e-12);
    // Calls 52, 56 … 200 were left to NCCL: 38 of 150.
    assert!((figures.fallback_share - 38.0 / 150.0).abs() < 1e-12);
    // ln(6 / 6.5) is within 0.1, ln(6 / 9) is not.
    assert_eq!(figures.coverage, Some(0.5));
    // 4 µs a call beside 8, and one trial of 40 µs.
    let expected = BTreeMap::from([(50, 240.0 / 400.0), (200, 840.0 / 1600.0)]);
    assert_eq!(figures.cumulative.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (mark, ratio) in expected {
        assert!((figures.cumulative[&mark] - ratio).abs() < 1e-12, "{mark}");
    }
}

/// Whoever is held is told nothing of the job's calls; what it measures itself is its own business.
#[test]
fn who_is_held_learns_nothing_of_the_calls_but_may_try() {
    let mut tally = Tally::default();
    let mut curious = Curious::default();
    let mut judge = Judge::new(&mut tally, true);
    play(&mut Script::new(60), &mut curious, true, &mut judge);
    judge.finish(2, false);
    assert!(curious.told.is_empty() && tally.episodes.is_empty());
    assert_eq!(curious.tried, Some(7.0));
    // Both cells came up after the warm-up, in one world, and are only held ones.
    assert!(tally.cells.iter().all(|cell| cell.held.count == 1.0 && cell.judged.count == 0.0));
    assert_eq!(tally.cells.len(), 2);
}

#[test]
fn knobs_that_are_not_legal_are_left_to_nccl() {
    let mut tally = Tally::default();
    let mut judge = Judge::new(&mut tally, false);
    let missing = Knobs::with_pair(Pair::new(Algorithm::Tree, Protocol::LL), ChannelChoice::OWN);
    play(&mut Script::new(60), &mut Wants(missing), false, &mut judge);
    judge.finish(2, false);
    let judged: Vec<_> = tally.cells.iter().map(|cell| (cell.calls, cell.left)).collect();
    assert_eq!(judged, [((60 - WARM_UP) / 2, (60 - WARM_UP) / 2); 2]);
}

/// A long job and a short one in the same place: each world weighs the same, whatever its calls.
#[test]
fn worlds_weigh_the_same() {
    let mut tally = Tally::default();
    for (calls, knobs) in [(WARM_UP + 200, ring(8)), (WARM_UP + 2, ring(1))] {
        let mut judge = Judge::new(&mut tally, false);
        play(&mut Script::new(calls), &mut Wants(knobs), false, &mut judge);
        judge.finish(2, false);
        let mut held = Judge::new(&mut tally, true);
        play(&mut Script::new(calls), &mut Wants(knobs), true, &mut held);
        held.finish(2, false);
    }
    let figures = report_of(vec![tally]).overall.unwrap();
    // Twice as fast in one world and half as fast in the other.
    assert!((figures.speedup - 1.0).abs() < 1e-12, "{}", figures.speedup);
    assert!((figures.regret - 3.0).abs() < 1e-12 && (figures.regret_hold - 3.0).abs() < 1e-12);
    // Only the first reaches call 200, so only it counts at 50.
    assert_eq!(figures.cumulative_episodes, 1);
    assert!(figures.cumulative.values().all(|ratio| (ratio - 0.5).abs() < 1e-12));
    assert_eq!(figures.cumulative.keys().copied().collect::<Vec<_>>(), [50, 200]);
}

#[test]
fn seeds_that_share_no_cell_have_no_deviation() {
    let cell = |gain: f64| CellTally {
        judged: Logs { count: 1.0, gain: ln(gain), loss: 0.0 },
        held: Logs { count: 1.0, ..Logs::default() },
        ..CellTally::default()
    };
    let empty = CellTally::default;
    let first = Tally { cells: vec![cell(2.0), empty()], episodes: Vec::new() };
    let second = Tally { cells: vec![empty(), cell(8.0)], episodes: Vec::new() };
    let figures = report_of(vec![first.clone(), second]).overall.unwrap();
    assert_eq!((figures.cells, figures.speedup_std), (2, None));
    // With one that both have, it is over that one alone.
    let both = Tally { cells: vec![cell(2.0), cell(8.0)], episodes: Vec::new() };
    assert_eq!(report_of(vec![first, both]).overall.unwrap().speedup_std, Some(0.0));
}

/// Two seeds, two cells: speed-ups 2 and 8 with the first, 4 and 4 with the second.
#[test]
fn figures_over_cells_and_seeds_worked_out_by_hand() {
    let cell = |gain: f64, loss: f64, ran: Vec<u32>| CellTally {
        judged: Logs { count: 4.0, gain: 4.0 * ln(gain), loss: 4.0 * ln(loss) },
        held: Logs { count: 2.0, gain: 0.0, loss: 2.0 * ln(3.0) },
        calls: 4,
        left: 1,
        ran: Counts(ran),
        ..CellTally::default()
    };
    let episode = |ratio: f64| EpisodeTally { tier: 2, held_out: false, logs: [Some(ln(ratio)), None, None] };
    let first = Tally {
        cells: vec![cell(2.0, 1.0, vec![4]), cell(8.0, 4.0, vec![0, 4])],
        episodes: vec![episode(0.5)],
    };
    let second = Tally {
        cells: vec![cell(4.0, 1.0, vec![4]), cell(4.0, 1.0, vec![0, 0, 4])],
        episodes: vec![episode(2.0)],
    };
    let report = report_of(vec![first, second]);
    let figures = &report.tiers[0].figures;
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    // Cells: √(2·4) and √(8·4); over them √(√8·√32) = 4. Seeds: √16 = 4 and 4, so no deviation.
    close(figures.speedup, 4.0);
    close(figures.speedup_std.unwrap(), 0.0);
    close(figures.worst_cell, 8.0_f64.sqrt());
    assert_eq!(figures.worst_at.collective, Collective::AllReduce);
    // Regret: cells 1 and √4, over them √2.
    close(figures.regret, 2.0_f64.sqrt() - 1.0);
    close(figures.regret_hold, 2.0);
    close(figures.fallback_share, 4.0 / 16.0);
    assert_eq!((figures.distinct_knobs, figures.coverage), (3, None));
    close(figures.cumulative[&50], 1.0);
    assert_eq!(figures.cumulative.len(), 1);
    assert_eq!((report.tiers.len(), report.held_out.is_none(), report.curves.len()), (1, true, 2));
}

#[test]
fn deviation_is_over_the_seeds() {
    let cell = |gain: f64| CellTally {
        judged: Logs { count: 1.0, gain: ln(gain), loss: 0.0 },
        held: Logs { count: 1.0, ..Logs::default() },
        ..CellTally::default()
    };
    let seeds = [1.0, 2.0, 3.0].map(|gain| Tally { cells: vec![cell(gain)], episodes: Vec::new() });
    let std = report_of(seeds.into()).overall.unwrap().speedup_std.unwrap();
    assert!((std - 1.0).abs() < 1e-12, "{std}");
}

#[test]
fn what_several_workers_found_of_one_place_is_one_cell() {
    let part = |choices: Vec<(Choice, Realised)>, ran: Vec<u32>| {
        let place = Place { cluster: "x".to_owned(), nodes: 1, collective: Collective::Reduce, bytes: 4 };
        let fastest = ran.iter().map(|&calls| f64::from(calls)).collect();
        let cell = Cell { place, tier: 1, held_out: false, own: 0, fastest, logs: Vec::new(), choices };
        let judged = Logs { count: 1.0, gain: 1.0, loss: 2.0 };
        let tally = Tally {
            cells: vec![CellTally { judged, ran: Counts(ran), ..CellTally::default() }],
            episodes: Vec::new(),
        };
        Gathered { cells: vec![cell], players: vec![vec![tally]] }
    };
    let realised = Realised { pair: RING, max_channels: 8, channels: 8, threads: 512, chunk_bytes: 1 };
    let [a, b] = [1, 2].map(|channels| (Choice([0, 0, channels, 0, 0]), realised));
    let mut joined = Gathered::join(vec![part(vec![a, b], vec![5, 1]), part(vec![b], vec![3])]);
    assert_eq!((joined.cells.len(), joined.cells[0].choices.len()), (1, 2));
    let tally = &joined.players[0][0].cells[0];
    assert_eq!((tally.ran.0.as_slice(), tally.judged.count), (&[5, 4][..], 2.0));
    assert_eq!(joined.cells[0].fastest, [5.0, 4.0]);
    joined.keep(|tier| tier != 1);
    assert!(joined.cells.is_empty() && joined.players[0][0].cells.is_empty());
}

#[test]
fn worlds_of_an_evaluation_are_its_own() {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 3, worlds: 8, threads: 1, constants: &constants, schedules: None };
    let worlds = evaluation.kept_worlds();
    let kept: Vec<&World> = worlds.iter().flatten().collect();
    assert_eq!(kept.len(), 24);
    let cluster = Cluster::load("dgx_a100").unwrap();
    for (at, world) in kept.iter().enumerate() {
        let trained = World::draw(&constants, world.seed().unwrap());
        assert_ne!(world.constants(), trained.constants());
        assert_ne!(world.field(&cluster, 2), trained.field(&cluster, 2));
        assert!(kept[..at].iter().all(|other| other.constants() != world.constants()));
    }
}
