//! The synthesised path: chosen only where a runtime runs it, timed by the world, and worth what it says.

use std::sync::Arc;

use dynamiccl_env::cluster::{Cluster, ClusterError};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::evaluate::{Entrant, Evaluation, Figures, Kind, Machine};
use dynamiccl_env::gym::{Action, Env, Observation};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::schedules::{Scheduled, Schedules, Timetable};
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_spec::features::JOB_WIDTH;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::{
    Choice, Collective, Decision, Head, Knobs, Measure, Path, Protocol, Query, Runtime, Tuner,
};

use crate::scene::allreduce;

/// A fixed time for every AllReduce.
#[derive(Debug)]
pub struct Quick(pub f64);

impl Schedules for Quick {
    fn of(&self, _: &Cluster, _: u32, _: u32) -> Option<Arc<dyn Timetable>> {
        Some(Arc::new(Quick(self.0)))
    }
}

impl Timetable for Quick {
    fn at(&self, collective: Collective, _: u64) -> Option<Scheduled> {
        let there = collective == Collective::AllReduce;
        there.then_some(Scheduled { micros: self.0, protocol: Protocol::LL })
    }
}

const SYNTHESISED: usize = Path::Synthesised as usize;

fn allows(seen: &Observation) -> bool {
    seen.mask[Head::Path as usize] >> SYNTHESISED & 1 == 1
}

fn env(runtime: Runtime, micros: f64) -> (SimEnv, Observation) {
    let mut env = allreduce().env().with_schedules(Arc::new(Quick(micros))).with_runtime(runtime);
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(3), &mut seen).unwrap();
    (env, seen)
}

#[test]
fn without_a_runtime_nothing_changes_and_the_path_is_forbidden() {
    let mut plain = allreduce().env();
    let mut expected = Observation::new(plain.spaces());
    plain.reset(Some(3), &mut expected).unwrap();
    let (mut stock, seen) = env(Runtime::Stock, 1.0);
    assert_eq!(seen, expected);
    assert!(!allows(&seen) && stock.schedule_gain().is_none());
    let choice = [Path::Synthesised as u8, 5, 0, 0, 0];
    let refused = stock.step(&Action { choice, exploratory: false }, &mut expected).unwrap_err();
    assert!(refused.to_string().contains("path"), "{refused}");
}

#[test]
fn a_runtime_offers_it_and_it_takes_what_its_gain_says() {
    for micros in [1.0, 1e4] {
        let (mut env, mut seen) = env(Runtime::Msccl, micros);
        assert!(allows(&seen));
        let at = |name| JOB_WIDTH + slot(name).unwrap().start;
        assert_eq!(seen.context[at("synthesised_available")], 1.0);
        assert_eq!(seen.context[at("synthesised_cost")] < 0.0, micros == 1.0);
        let gain = env.schedule_gain().unwrap();
        let truths = env.truths();
        let schedules: Vec<_> = truths.iter().filter(|s| s.knobs.path == Path::Synthesised).collect();
        assert_eq!(schedules.len(), 1);
        let best = truths.iter().map(|s| s.micros).fold(f64::INFINITY, f64::min);
        assert_eq!(best == schedules[0].micros, micros == 1.0);
        let own = truths[0];
        let mut choice = Choice::of(&own.knobs, own.realised.pair);
        choice.0[Head::Path as usize] = Path::Synthesised as u8;
        let info = env.step(&Action { choice: choice.0, exploratory: false }, &mut seen).unwrap().info;
        let last = info.last.unwrap();
        let ran = last.ran.unwrap();
        assert_eq!(ran.micros, schedules[0].micros);
        assert!((f64::from(gain) - (own.micros / ran.micros).ln()).abs() < 1e-5);
        assert_eq!(last.predicted, None);
        let last_path = slot("last_path").unwrap();
        assert_eq!(seen.history[last_path][SYNTHESISED], 1.0);
    }
}

#[test]
fn what_nccl_would_gain_is_asked_on_nccls_path_whatever_was_chosen() {
    let (env, _) = env(Runtime::Msccl, 1.0);
    let width = Head::Pair.size() * Head::Channels.size() * Head::Chunk.size();
    let gains = |path| {
        let mut into = vec![0.0; width];
        env.gains(&Choice([path, 5, 0, 0, 0]), &mut into).unwrap();
        into.iter().map(|gain| gain.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(gains(Path::Synthesised as u8), gains(0));
}

#[test]
fn a_regime_draws_runtimes_and_the_mask_follows() {
    let stage = Curriculum::load("smoke").unwrap().stages[0].clone();
    let share = |text: Option<&str>| {
        let mut stage = (*stage).clone();
        stage.file.regime.runtime = text
            .map(|text| toml::from_str::<toml::Table>(text).unwrap()["runtime"].clone().try_into().unwrap());
        let constants = Arc::new(ConstantsFile::full());
        let mut env = SimEnv::new(Arc::new(stage), constants).with_schedules(Arc::new(Quick(1.0)));
        let mut seen = Observation::new(env.spaces());
        env.reset(Some(1), &mut seen).unwrap();
        let mut count = 0;
        for _ in 0..200 {
            env.reset(None, &mut seen).unwrap();
            count += usize::from(allows(&seen));
        }
        count
    };
    assert_eq!(share(None), 0);
    assert_eq!(share(Some("runtime = [\"stock\"]")), 0);
    let half = share(Some("runtime = { stock = 1, msccl = 1 }"));
    let all = share(Some("runtime = [\"msccl\"]"));
    assert!(all > 20 && half > all / 4 && half < all * 3 / 4, "{half} of {all}");
}

/// Always takes the schedule, whether or not one can run.
struct Stubborn;

impl Tuner for Stubborn {
    fn name(&self) -> &str {
        "stubborn"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        Decision::chosen(query, Knobs { path: Path::Synthesised, ..query.own() })
    }
}

/// The paths of the stubborn, of NCCL and of the oracle, with schedules that take this long.
fn judged(micros: Option<f64>) -> [Figures; 3] {
    let constants = ConstantsFile::full();
    let quick = micros.map(Quick);
    let schedules = quick.as_ref().map(|quick| quick as &dyn Schedules);
    let evaluation =
        Evaluation { seed: 1, seeds: 1, worlds: 1, threads: 1, constants: &constants, schedules };
    let machines = Machine::list(&["dgx_a100".to_owned()], &[2], &[2]).unwrap();
    let nccl = Entrant::tuner("own", |_| Box::new(Own)).of_kind(Kind::Nccl);
    let entrants = [Entrant::tuner("stubborn", |_| Box::new(Stubborn)), nccl, Entrant::oracle()];
    let report = evaluation.cells::<ClusterError>(&machines, &[1 << 20], &entrants, || Ok(())).unwrap();
    let figures: Vec<Figures> = report.tuners.into_iter().map(|tuner| tuner.overall.unwrap()).collect();
    figures.try_into().unwrap()
}

/// What NCCL would do.
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
fn an_evaluation_says_who_takes_the_oracles_path_and_who_wants_what_cannot_run() {
    let [stubborn, own, oracle] = judged(Some(1.0));
    let of = |figures: &Figures| (figures.paths.cells, figures.paths.agreement);
    // One collective of five has a schedule, and nothing is faster.
    assert_eq!([of(&stubborn), of(&own), of(&oracle)], [(1, Some(1.0)), (1, Some(0.0)), (1, Some(1.0))]);
    assert!(stubborn.paths.unrunnable > 0 && own.paths.unrunnable == 0);
    assert!(stubborn.speedup > 1.2 && own.speedup == 1.0 && oracle.speedup >= stubborn.speedup);

    let [stubborn, own, oracle] = judged(Some(1e6));
    assert_eq!([of(&stubborn), of(&own), of(&oracle)], [(1, Some(0.0)), (1, Some(1.0)), (1, Some(1.0))]);

    let [stubborn, own, oracle] = judged(None);
    assert_eq!([of(&stubborn), of(&own), of(&oracle)], [(0, None); 3]);
    assert_eq!(stubborn.speedup, 1.0);
    assert_eq!((own.paths.unrunnable, oracle.paths.unrunnable), (0, 0));
}
