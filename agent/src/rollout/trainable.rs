//! What a trainer asks of an environment beside Gymnasium's contract: where its stream of episodes stands,
//! what a step came to, and what every choice would have been worth, where somebody knows.

use dynamiccl_env::gym::{Dressed, Env, EnvError, Observation, Stream};
use dynamiccl_env::rails::{RailsEnv, RailsInfo};
use dynamiccl_env::reward::TERMS;
use dynamiccl_env::sim_env::{SimEnv, SimInfo};
use dynamiccl_env::wan::{WanEnv, WanInfo};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Choice, GateSet, Head};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An environment that an agent can be trained in.
pub trait Trainable: Env {
    /// A point in its stream of episodes.
    type Place: Clone + std::fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send;

    /// Where the running episode began.
    fn place(&self) -> Self::Place;

    /// Begins the episode of a place once more.
    fn rejoin(&mut self, place: &Self::Place, into: &mut Observation) -> Result<Self::Info, EnvError>;

    /// ln(NCCL's own true time ÷ that of every choice) of the call that is observed now, on NCCL's path with
    /// threads as chosen, and ln(NCCL's own true time ÷ the predicted time of each pair); none where nobody knows.
    fn gains(&self, _chosen: &Choice, _into: &mut [f32]) -> Option<[f32; PAIRS]> {
        None
    }

    /// ln(NCCL's own true time ÷ that of the synthesised schedule) of the call that is observed now; none where
    /// none may be chosen.
    fn schedule_gain(&self) -> Option<f32> {
        None
    }

    /// Whether memory reaches decisions before a row of the history says that something was measured: where no row ever says
    /// so, and yet there is something to remember.
    fn always_remembers(&self) -> bool;

    /// What a step came to, as far as its info tells.
    fn outcome(info: &Self::Info) -> Outcome;
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcome {
    /// ln(measured time ÷ NCCL's prediction for the pair that ran).
    pub ln_time: Option<f32>,
    /// ln(NCCL's own true time ÷ the true time of what ran), or the like where it is not about NCCL's knobs.
    pub gain: Option<f32>,
    /// The threads with which it ran, as a choice; none where nothing is known of them.
    pub threads: Option<u8>,
    /// Terms of the reward.
    pub terms: [f64; TERMS],
    /// Gates that fired.
    pub gates: GateSet,
}

impl Trainable for SimEnv {
    type Place = Option<Stream>;

    fn place(&self) -> Option<Stream> {
        self.stream().cloned()
    }

    /// Where nobody is ever told anything, what was called is remembered.
    fn always_remembers(&self) -> bool {
        self.is_untold()
    }

    fn rejoin(&mut self, place: &Option<Stream>, into: &mut Observation) -> Result<SimInfo, EnvError> {
        SimEnv::rejoin(self, begun(place)?, into)
    }

    fn gains(&self, chosen: &Choice, into: &mut [f32]) -> Option<[f32; PAIRS]> {
        SimEnv::gains(self, chosen, into)
    }

    fn schedule_gain(&self) -> Option<f32> {
        SimEnv::schedule_gain(self)
    }

    fn outcome(info: &SimInfo) -> Outcome {
        let Some(last) = &info.last else { return Outcome::default() };
        let times = last.own.zip(last.ran);
        Outcome {
            ln_time: last.ran.zip(last.predicted).map(|(_, us)| ln(last.measured / f64::from(us))),
            gain: times.map(|(own, ran)| ln(own.micros / ran.micros)),
            threads: last.ran.map(|ran| Choice::of(&ran.knobs, ran.realised.pair).0[Head::Threads as usize]),
            terms: last.terms.all(),
            gates: last.gates,
        }
    }
}

/// Nothing of it is about NCCL's knobs: what is gained is beside a ring that never changes.
impl Trainable for Dressed<WanEnv> {
    type Place = Option<Stream>;

    fn place(&self) -> Option<Stream> {
        self.within().stream().cloned()
    }

    fn rejoin(&mut self, place: &Option<Stream>, into: &mut Observation) -> Result<WanInfo, EnvError> {
        let place = begun(place)?;
        self.observing(into, |env, bare| env.rejoin(place, bare))
    }

    fn always_remembers(&self) -> bool {
        true
    }

    fn outcome(info: &WanInfo) -> Outcome {
        Outcome { gain: Some(ln(info.base_ms / (info.ms + info.cost_ms))), ..Outcome::default() }
    }
}

/// What is gained is beside circuits that are always there: never more than nothing.
impl Trainable for Dressed<RailsEnv> {
    type Place = (u64, u64);

    fn place(&self) -> (u64, u64) {
        self.within().place()
    }

    fn rejoin(&mut self, place: &(u64, u64), into: &mut Observation) -> Result<RailsInfo, EnvError> {
        self.observing(into, |env, bare| env.rejoin(*place, bare))
    }

    fn always_remembers(&self) -> bool {
        true
    }

    fn outcome(info: &RailsInfo) -> Outcome {
        Outcome { gain: Some(ln(1.0 / (1.0 + info.stall))), ..Outcome::default() }
    }
}

fn begun(place: &Option<Stream>) -> Result<&Stream, EnvError> {
    place.as_ref().ok_or(EnvError::NoEpisode("none had begun when it was saved"))
}

fn ln(x: f64) -> f32 {
    dynamiccl_spec::math::ln(x.max(1e-9)) as f32
}
