//! Ranks that are made up: what they are asked to call is written down.

use std::sync::Arc;

use dynamiccl_spec::{Algorithm, Decision, Measure, Protocol, Query, Tuner};

use super::*;
use crate::gym::check::{CheckOptions, check};
use crate::gym::{Env, EnvError, Observation, RandomActor};
use crate::measure::sweep::{About, Link};
use crate::model::ConstantsFile;
use crate::nccl::Communicator;
use crate::sim_env::SimEnv;
use crate::swept::{judge, machine};

/// µs of NCCL's own choice.
const OWN: f64 = 100.0;
const FAST: Pair = Pair::new(Algorithm::Tree, Protocol::Simple);
const SLOW: Pair = Pair::new(Algorithm::Ring, Protocol::LL);

type Log = Arc<Mutex<Vec<(Call, Option<Pair>)>>>;

/// Tree/simple takes half as long as NCCL's own, ring/LL five times as long, everything else the same.
#[derive(Debug)]
struct Made {
    communicator: Communicator,
    log: Log,
    breaks: bool,
    /// What a call takes in earnest.
    takes: Duration,
}

impl Caller for Made {
    fn look(&mut self, collective: Collective, bytes: u64) -> Result<CostTable, String> {
        Ok(self.communicator.cost_table(collective, bytes, 1))
    }

    fn time(
        &mut self,
        collective: Collective,
        bytes: u64,
        other: Option<(Pair, ChannelChoice)>,
    ) -> Result<Option<InTurn>, String> {
        std::thread::sleep(self.takes);
        let mut log = self.log.lock().unwrap();
        log.push(((collective, bytes), other.map(|(pair, _)| pair)));
        if self.breaks && log.len() > 20 {
            return Err("rank 1 died".to_owned());
        }
        let micros = |pair| {
            if pair == FAST {
                0.5 * OWN
            } else if pair == SLOW {
                5.0 * OWN
            } else {
                OWN
            }
        };
        let other = other.map(|(pair, _)| vec![micros(pair); 2]).unwrap_or_default();
        Ok(Some(InTurn { own: vec![OWN; 2], other }))
    }
}

const LIMITS: Limits = Limits { slowdown: 2.0, most: 3, doubts: 1.0, lasts: None };

fn lived(limits: Limits, breaks: bool) -> (Arc<Lived>, Log) {
    let (opened, log) = opened(limits, breaks, Duration::ZERO);
    (Arc::new(opened.unwrap()), log)
}

fn opened(limits: Limits, breaks: bool, takes: Duration) -> (Result<Lived, LivedError>, Log) {
    let machine = machine(4, Link::Loopback, &About::default(), None, "live".as_ref()).unwrap();
    let log = Log::default();
    let communicator = machine.communicator().unwrap();
    let caller = Box::new(Made { communicator, log: Arc::clone(&log), breaks, takes });
    let calls = [16 << 10, 256 << 10].map(|bytes| (Collective::AllReduce, bytes));
    (Lived::open(machine, &calls, caller, limits), log)
}

fn env(lived: &Arc<Lived>) -> SimEnv {
    SimEnv::of_live(Arc::clone(lived), None, Arc::new(ConstantsFile::full()))
}

/// Acts at random; what went wrong, if anything did.
fn wander(env: &mut SimEnv, steps: usize) -> Result<(), EnvError> {
    let (mut seen, mut actor) = (Observation::new(env.spaces()), RandomActor::new(7));
    env.reset(Some(3), &mut seen)?;
    for _ in 0..steps {
        let action = actor.act(&seen);
        let moved = env.step(&action, &mut seen)?;
        let last = moved.info.last.unwrap();
        assert!(moved.reward.is_finite() && last.measured > 0.0, "{last:?}");
        if moved.terminated || moved.truncated {
            env.reset(None, &mut seen)?;
        }
    }
    Ok(())
}

#[test]
fn what_is_slow_is_not_called_again_and_what_is_known_neither() {
    let (lived, log) = lived(LIMITS, false);
    wander(&mut env(&lived), 500).unwrap();
    let log = log.lock().unwrap();
    let asked = |pair| log.iter().filter(|(call, of)| call.1 == 16 << 10 && *of == Some(pair)).count();
    // On such links NCCL launches one channel or two.
    assert!((1..=2).contains(&asked(SLOW)), "{}", asked(SLOW));
    assert!((3..=6).contains(&asked(FAST)), "{}", asked(FAST));
    assert_eq!(lived.called() as usize, log.len() - 2, "two calls were looked at first");
}

/// Changes nothing.
struct Keeps;

impl Tuner for Keeps {
    fn name(&self) -> &str {
        "keeps"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        Decision::chosen(query, query.own())
    }
}

#[test]
fn what_is_known_is_a_sweep() {
    let (lived, _) = lived(LIMITS, false);
    assert!(matches!(lived.swept(), Err(SweptError::Nothing { .. })), "nothing but NCCL's own is known");
    wander(&mut env(&lived), 500).unwrap();
    let swept = Arc::new(lived.swept().unwrap());
    let judged = judge(&swept, Shown::NOTHING, &mut Keeps).unwrap();
    assert!((judged.oracle - 2.0).abs() < 1e-9 && judged.speedup == 1.0, "{judged:?}");
}

#[test]
fn it_keeps_the_contract() {
    let limits = Limits { slowdown: f64::INFINITY, most: 1, ..LIMITS };
    let (lived, _) = lived(limits, false);
    let options = CheckOptions { steps: 2000, ..CheckOptions::default() };
    let report = check(|| Ok::<_, EnvError>(env(&lived)), &options, |_| Ok(())).unwrap();
    assert!(report.ok(), "{report:?}");
    assert_eq!(report.id, "live-v1");
}

#[test]
fn ranks_that_fail_end_it_with_what_they_said() {
    let (lived, _) = lived(LIMITS, true);
    let error = wander(&mut env(&lived), 500).unwrap_err();
    assert!(error.to_string().contains("rank 1 died"), "{error}");
}

/// Two calls are looked at first, and what they take counts.
#[test]
fn after_its_time_no_call_is_made() {
    // There must be some time left where the machine pauses before the first call.
    let takes = Duration::from_millis(200);
    let lasting = |millis| Limits { lasts: Some(Duration::from_millis(millis)), ..LIMITS };
    let (refused, log) = opened(lasting(150), false, takes);
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("timed of 1 of 2 calls; give more --seconds"), "{told}");
    assert_eq!(log.lock().unwrap().len(), 1);
    let (opened, log) = opened(lasting(500), false, Duration::from_millis(50));
    let lived = Arc::new(opened.unwrap());
    assert!(matches!(wander(&mut env(&lived), 500), Err(EnvError::TimeIsOver)));
    assert!(lived.is_over() && (3..=10).contains(&log.lock().unwrap().len()));
}
