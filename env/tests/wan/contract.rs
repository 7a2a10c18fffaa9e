//! The environment keeps the contract, plain and in the clothes of NCCL's knobs.

use std::sync::Arc;

use dynamiccl_env::gym::check::{CheckOptions, check};
use dynamiccl_env::gym::{Action, Dressed, Env, Observation, RandomActor};
use dynamiccl_env::wan::control::{Controller, Move, View};
use dynamiccl_env::wan::{Course, Lesson, Reference, Traffic, WanCurriculum, WanEnv};
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};

fn curriculum() -> Arc<WanCurriculum> {
    Arc::new(WanCurriculum::load("wan").unwrap())
}

fn kept<E: Env>(make: impl Fn() -> E) {
    let options = CheckOptions { steps: 3_000, seeds: vec![1, 2], ..CheckOptions::default() };
    let report = check(|| Ok::<_, ()>(make()), &options, |_| Ok(())).unwrap();
    assert!(report.ok(), "{report:?}");
}

#[test]
fn the_contract_is_kept() {
    kept(|| WanEnv::new(curriculum()));
}

#[test]
fn it_is_kept_in_other_clothes() {
    let dressed = || Dressed::new(WanEnv::new(curriculum())).expect("its numbers fit");
    kept(dressed);
    let env = dressed();
    assert_eq!((env.spaces().context_width(), env.spaces().history_width()), (CONTEXT_WIDTH, HISTORY_WIDTH));
}

#[test]
fn an_episode_can_be_begun_once_more() {
    let mut env = WanEnv::new(curriculum());
    let mut first = Observation::new(env.spaces());
    env.reset(Some(3), &mut first).unwrap();
    env.reset(None, &mut first).unwrap();
    let place = env.stream().unwrap().clone();
    let mut again = Observation::new(env.spaces());
    let mut other = WanEnv::new(curriculum());
    other.rejoin(&place, &mut again).unwrap();
    assert_eq!(first, again);
}

/// Somebody who writes down what is seen.
struct Recorder(Vec<Observation>, RandomActor);

impl Controller for Recorder {
    fn choose(&mut self, view: &mut View<'_>) -> Move {
        let mut seen = Observation::new(&WanEnv::space());
        view.observe(&mut seen);
        let action = self.1.act(&seen);
        self.0.push(seen);
        Move::ALL[usize::from(action.choice[0])]
    }
}

/// A policy that is judged sees what it has learned from: the same job in the same traffic, observed by both.
#[test]
fn a_controller_sees_what_the_environment_shows() {
    for lag in [0, 2] {
        let mut curriculum = WanCurriculum::load("wan").unwrap();
        (curriculum.file.collectives, curriculum.file.reference) = (40, Reference::Mean);
        curriculum.file.lag = toml::Value::from(vec![lag]).try_into().unwrap();
        let mut env = WanEnv::new(Arc::new(curriculum.clone()));
        let mut seen = Observation::new(env.spaces());
        env.reset(Some(7), &mut seen).unwrap();
        // The environment's traffic: of what its generator gives after the job, the second number seeds it.
        let mut rng = env.stream().unwrap().rng();
        let Lesson { setting, costs, rho, .. } = curriculum.draw(&mut rng);
        let seeds: [u64; 2] = std::array::from_fn(|_| rand::RngExt::random(&mut rng));
        let course =
            Course::draw(&setting, Traffic::new(&setting, rho, seeds[1], 0), 40, |_| Ok::<_, ()>(()))
                .unwrap();
        let mut recorder = Recorder(Vec::new(), RandomActor::new(5));
        let passed = course.run(&setting, costs, lag as usize, &mut recorder, || Ok::<_, ()>(())).unwrap();
        let (mut actor, mut sum) = (RandomActor::new(5), 0.0);
        for shown in &recorder.0 {
            assert_eq!(
                (&shown.context, &shown.history, shown.mask),
                (&seen.context, &seen.history, seen.mask)
            );
            let action: Action = actor.act(&seen);
            let step = env.step(&action, &mut seen).unwrap();
            sum += step.info.ms + step.info.cost_ms;
        }
        assert!((sum / 40.0 - passed.mean_ms).abs() < 1e-9);
    }
}
