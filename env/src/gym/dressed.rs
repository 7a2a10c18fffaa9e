//! A small environment in the clothes of NCCL's knobs: the same widths and heads, so that the one network and
//! the one trainer there are can act in it.
//!
//! Its features lie where those of a call would, but not where the network gives numbers a meaning of their own;
//! its heads are the first ones of the network. Nothing here knows what the features mean.

use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, JOB_WIDTH};

use super::{Action, Env, EnvError, FeatureSpace, Observation, Spaces, Transition};

/// An environment in the clothes of NCCL's knobs.
#[derive(Debug, Clone)]
pub struct Dressed<E: Env> {
    env: E,
    spaces: Spaces,
    clothes: Clothes,
    bare: Observation,
}

/// Where the numbers of a smaller environment lie in those of NCCL's knobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clothes {
    context: Vec<usize>,
    history: Vec<usize>,
    role: usize,
}

impl Clothes {
    /// Places for so many numbers of context and history; none where there are more than fit.
    pub fn of(spaces: &Spaces) -> Option<Clothes> {
        let taken = |name: &str| slot(name).unwrap_or(0..0);
        let (role, cost) = (taken("pipeline_role"), taken("nccl_cost"));
        // What the encoding got after policies were trained in these clothes comes last, so that they still fit.
        let later = taken("unfilled_level").start;
        let call = (0..later).filter(|at| !cost.contains(at)).map(|at| JOB_WIDTH + at);
        let job = (0..JOB_WIDTH).filter(|at| !role.contains(at));
        let context = call.chain(job).chain(JOB_WIDTH + later..CONTEXT_WIDTH);
        let context: Vec<usize> = context.take(spaces.context_width()).collect();
        let read = ["has_feedback", "last_time", "last_pair"].map(taken);
        let free = |at: &usize| !read.iter().any(|range| range.contains(at));
        let history: Vec<usize> = (0..HISTORY_WIDTH).filter(free).take(spaces.history_width()).collect();
        let fits = context.len() == spaces.context_width() && history.len() == spaces.history_width();
        fits.then_some(Clothes { context, history, role: role.start })
    }

    /// Puts an observation into clothes.
    pub fn put_on(&self, bare: &Observation, into: &mut Observation) {
        into.context.fill(0.0);
        into.history.fill(0.0);
        into.context[self.role] = 1.0;
        self.context.iter().zip(&bare.context).for_each(|(&at, &number)| into.context[at] = number);
        self.history.iter().zip(&bare.history).for_each(|(&at, &number)| into.history[at] = number);
        into.privileged.copy_from_slice(&bare.privileged);
        (into.mask, into.decides) = (bare.mask, bare.decides);
    }
}

impl<E: Env> Dressed<E> {
    /// Dresses an environment; none where its numbers do not fit.
    pub fn new(env: E) -> Option<Self> {
        let own = env.spaces();
        let clothes = Clothes::of(own)?;
        let spaces = Spaces {
            id: own.id.clone(),
            context: worn("context", &own.context, &clothes.context, CONTEXT_WIDTH),
            history: worn("history", &own.history, &clothes.history, HISTORY_WIDTH),
            privileged: own.privileged.clone(),
            heads: own.heads.clone(),
        };
        let bare = Observation::new(own);
        Some(Dressed { env, spaces, clothes, bare })
    }

    /// The environment within.
    pub fn within(&self) -> &E {
        &self.env
    }

    /// Does something that observes within, and dresses what it observes.
    pub fn observing<R>(
        &mut self,
        into: &mut Observation,
        act: impl FnOnce(&mut E, &mut Observation) -> Result<R, EnvError>,
    ) -> Result<R, EnvError> {
        let done = act(&mut self.env, &mut self.bare)?;
        self.clothes.put_on(&self.bare, into);
        Ok(done)
    }
}

/// The same features, number by number, where they lie; between them is room.
fn worn(part: &str, features: &[FeatureSpace], places: &[usize], width: usize) -> Vec<FeatureSpace> {
    let room = |at| FeatureSpace::scalar(&format!("room_{part}_{at}"), 0.0);
    let mut all: Vec<FeatureSpace> = (0..width).map(room).collect();
    let numbers = features.iter().flat_map(|feature| (0..feature.width).map(move |at| (feature, at)));
    for ((feature, number), &place) in numbers.zip(places) {
        let name = format!("{}_{number}", feature.name);
        all[place] = FeatureSpace { name, width: 1, ..feature.clone() };
    }
    all
}

impl<E: Env> Env for Dressed<E> {
    type Info = E::Info;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<E::Info, EnvError> {
        self.observing(into, |env, bare| env.reset(seed, bare))
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<E::Info>, EnvError> {
        self.observing(into, |env, bare| env.step(action, bare))
    }
}
