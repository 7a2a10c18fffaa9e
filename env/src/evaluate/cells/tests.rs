//! The Latin design, and what an episode shows of itself.

use dynamiccl_spec::{Algorithm, ChannelChoice, Choice, Head, Knobs, Pair, Protocol, ThreadChoice};

use super::*;
use crate::cluster::{Cluster, CommOptions};
use crate::evaluate::calls::Calls;
use crate::headroom::sizes;

fn episodes() -> (Ground, Vec<Episode>) {
    let cluster = std::sync::Arc::new(Cluster::load("dgx_a100").unwrap());
    let machine = Machine::new(&cluster, 2).unwrap();
    let ground = Ground::new(&machine, &sizes(), None, &ConstantsFile::full()).unwrap();
    let world = World::keep(&ConstantsFile::full(), 5);
    let simulator = Simulator::new(&cluster, 2, &CommOptions::default(), &world).unwrap();
    let episodes = Episode::all(&ground, &simulator, world.weather(&cluster, 2), 5);
    (ground, episodes)
}

#[test]
fn five_episodes_make_every_cell_once() {
    let (ground, episodes) = episodes();
    let mut seen = vec![0; ground.cells.len()];
    for episode in &episodes {
        assert_eq!((episode.kinds.len(), episode.calls.len()), (11, 1000));
        episode.kinds.iter().for_each(|kind| seen[kind.cell] += 1);
        // Eleven calls in a row are eleven kinds.
        let mut kinds: Vec<usize> = episode.calls[..11].iter().map(|call| call.kind).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, (0..11).collect::<Vec<_>>());
        let judged: f64 = episode.truths().flat_map(|(_, truth)| truth.segments()).map(|(_, n)| n).sum();
        assert_eq!(judged, 950.0);
    }
    assert_eq!(seen, vec![1; 55]);
}

#[test]
fn every_legal_choice_has_its_launch() {
    let (ground, _) = episodes();
    for options in &ground.cells {
        let own = &options.launches[options.own];
        assert_eq!(Some(own.realised.pair), options.asked.gated.own);
        assert_eq!(own.choice.0[2..], [0, 0, 0]);
        assert!((2..400).contains(&options.launches.len()));
        for (at, launch) in options.launches.iter().enumerate() {
            assert_eq!(options.launch(&launch.choice), Some(at));
        }
        let foreign = Pair::all().find(|pair| options.asked.call.table.get(*pair).is_none());
        let choice = Choice([0, foreign.unwrap().index() as u8, 0, 0, 0]);
        assert_eq!(options.launch(&choice), None);
    }
}

#[test]
fn threads_are_chosen_once_and_stay() {
    let (ground, episodes) = episodes();
    let mut memory = Memory::new(1, Some(1));
    let mut table = Table::new(&ground, &episodes[0], Arc::new(ground.encoder.clone()), &mut memory);
    let first = table.next().unwrap();
    assert_eq!(first.gated.mask.count(Head::Threads), 5);
    assert_eq!(first.past.choice, None);
    let wish = Knobs { threads: ThreadChoice::of(128).unwrap(), ..first.query().own() };
    let choice = table.choose(&wish).choice;
    let ran = table.run(choice);
    let second = table.next().unwrap();
    assert_eq!(second.gated.mask.count(Head::Threads), 1);
    assert_eq!(second.past.choice.map(|choice| choice.index(Head::Threads)), Some(2));
    assert!(second.past.feedback.is_some() && ran.told);
    let own = second.query().own();
    let choice = table.choose(&own).choice;
    assert_eq!(table.run(choice).knobs, own);
    // What cannot run is NCCL's own.
    let third = table.next().unwrap();
    assert_eq!(third.past.choice.map(|choice| choice.index(Head::Threads)), Some(2));
    let missing = Knobs::with_pair(Pair::new(Algorithm::Nvls, Protocol::Simple), ChannelChoice::OWN);
    assert_eq!(table.attempt(&missing), None);
    let picked = table.choose(&missing);
    assert!(!picked.legal);
    assert_eq!(table.run(picked.choice).knobs, third.query().own());
}

#[test]
fn trials_are_as_noisy_as_calls_and_leave_no_trace() {
    let (ground, episodes) = episodes();
    let outcome = |trials: usize| {
        let mut memory = Memory::new(1, Some(1));
        let mut table = Table::new(&ground, &episodes[0], Arc::new(ground.encoder.clone()), &mut memory);
        let question = table.next().unwrap();
        let own = question.query().own();
        let measured: Vec<f64> = (0..trials).map(|_| table.attempt(&own).unwrap().measured).collect();
        let choice = table.choose(&own).choice;
        (measured, table.run(choice))
    };
    let (measured, after) = outcome(50);
    assert!(measured.windows(2).all(|two| two[0] != two[1]));
    let mean = measured.iter().sum::<f64>() / 50.0;
    assert!((mean / after.truth.micros - 1.0).abs() < 0.3, "{mean} {after:?}");
    assert_eq!(outcome(0).1, after);
}

#[test]
fn every_episode_begins_with_other_luck_for_its_trials() {
    let (_, episodes) = episodes();
    let first: Vec<_> = episodes.iter().map(|episode| episode.trials[episode.first_trial]).collect();
    assert!(first.iter().enumerate().all(|(at, luck)| !first[..at].contains(luck)), "{first:?}");
}

/// Asks for the time of every pair and takes the best, without any feedback.
struct Tries;

impl Tuner for Tries {
    fn name(&self) -> &str {
        "tries"
    }

    fn decide(
        &mut self,
        query: &dynamiccl_spec::Query<'_>,
        measure: &mut dynamiccl_spec::Measure<'_>,
    ) -> dynamiccl_spec::Decision {
        let pairs = query.gated.mask.indices(Head::Pair).filter_map(Pair::from_index);
        let tried = pairs.map(|pair| Knobs { pair: Some(pair), ..query.own() });
        let timed = tried.map(|knobs| (measure(&knobs).unwrap(), knobs));
        let best = timed.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        dynamiccl_spec::Decision::chosen(query, best.1)
    }
}

#[test]
fn who_is_held_may_measure_before_it_chooses() {
    let (ground, episodes) = episodes();
    let mut memory = Memory::new(1, Some(1));
    let decided =
        Table::new(&ground, &episodes[0], Arc::new(ground.encoder.clone()), &mut memory).hold(&mut Tries);
    let own: Vec<_> = episodes[0].kinds.iter().map(|kind| ground.cells[kind.cell].own).collect();
    assert!(decided != own && decided.iter().zip(&own).any(|(ran, own)| ran == own), "{decided:?}");
}
