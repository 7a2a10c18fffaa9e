//! The best schedule of a call on a machine.
//!
//! Deterministic, and cheap enough to be tabulated: a few recipes per sketch, judged by the executor.

use std::time::{Duration, Instant};

use dynamiccl_spec::{Collective, Protocol};

use crate::backend::Backend;
use crate::bound::{self, Utilisation};
use crate::error::SynthError;
use crate::execute::Executor;
use crate::machine::Machine;
use crate::msccl::export::export;
use crate::schedule::Schedule;
use crate::sketch::{Mode, Sketch};
use crate::stop::Stop;
use crate::synthesis::{Recipe, Synthesizer, synthesize_unless};
use crate::verify::verify;

/// Most ranks of which whole schedules are compared with several chunk counts.
const SMALL: usize = 64;
/// Most ranks of which sketches are compared that no NIC gains from; beyond, a run of one schedule takes seconds.
const MEDIUM: usize = 256;

/// A schedule with the sketch and the backend that it was chosen with.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The sketch.
    pub sketch: Sketch,
    /// How the schedule was made.
    pub recipe: Recipe,
    /// The schedule.
    pub schedule: Schedule,
    /// The backend.
    pub backend: Backend,
    /// µs by the executor.
    pub micros: f64,
    /// How long making the schedule took, without those that it was compared with.
    pub made_in: Duration,
}

/// What a plan is chosen from.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Sketches.
    pub sketches: Vec<Sketch>,
    /// Recipes.
    pub recipes: Vec<Recipe>,
    /// Backends.
    pub backends: Vec<Backend>,
    /// Whether only what MSCCL's executors have room for is taken.
    pub exportable: bool,
}

impl Choice {
    /// What is worth comparing on a machine: every mode, both kinds of belief, few and many chunks, and
    /// backends for latency and for rate.
    ///
    /// Of many ranks, only what knows the NICs, as in [`Choice::brief`].
    pub fn usual(machine: &Machine) -> Choice {
        if machine.ranks() > MEDIUM && machine.nodes() > 1 {
            let sketches = [Mode::Pair, Mode::Relay].map(|mode| Sketch::new(machine, mode)).to_vec();
            return Choice::few(sketches, vec![Recipe::DIRECT]);
        }
        let chunks: &[u32] = if machine.ranks() <= SMALL { &[1, 4] } else { &[1] };
        let modes: &[Mode] =
            if machine.nodes() == 1 { &[Mode::Full] } else { &[Mode::Full, Mode::Pair, Mode::Relay] };
        let with = |recipe: Recipe| chunks.iter().map(move |&chunks| recipe.with_chunks(chunks));
        let ring = Recipe { synthesizer: Synthesizer::Ring, ..Recipe::AWARE };
        let unaware = Recipe::unaware(machine.nodes());
        Choice {
            sketches: modes.iter().map(|&mode| Sketch::new(machine, mode)).collect(),
            recipes: with(Recipe::AWARE).chain([Recipe::DIRECT, unaware, ring.with_chunks(4)]).collect(),
            backends: backends(),
            exportable: false,
        }
    }
}

impl Choice {
    /// Runs that are told of, whether they are made or need not be.
    pub fn steps(&self) -> u64 {
        (self.sketches.len() * self.recipes.len() * self.backends.len()) as u64
    }
}

/// Most ranks of which all that is usual is compared where many schedules are wanted.
const QUICK: usize = 16;

impl Choice {
    /// What is compared where many schedules are wanted: [`Choice::usual`] on small machines; on others few backends,
    /// and neither relays nor rings, which are the best there in one call of fifty.
    pub fn brief(machine: &Machine) -> Choice {
        let mut usual = Choice::usual(machine);
        if machine.ranks() <= QUICK {
            return usual;
        }
        usual.sketches.retain(|sketch| sketch.mode != Mode::Relay);
        Choice::few(usual.sketches, vec![Recipe::AWARE, Recipe::DIRECT])
    }

    /// These with one backend for latency, one between, and for rate one of small and one of large tiles.
    fn few(sketches: Vec<Sketch>, recipes: Vec<Recipe>) -> Choice {
        let backend = |protocol, channels, buffer| Backend { protocol, channels, threads: 512, buffer };
        let backends = vec![
            backend(Protocol::LL, 1, 1 << 20),
            backend(Protocol::LL128, 4, 1 << 20),
            backend(Protocol::Simple, 4, 1 << 20),
            backend(Protocol::Simple, 4, 4 << 20),
        ];
        Choice { sketches, recipes, backends, exportable: false }
    }
}

/// Backends from low latency to high rate.
fn backends() -> Vec<Backend> {
    let backend = |protocol, channels, buffer| Backend { protocol, channels, threads: 512, buffer };
    vec![
        Backend::default(),
        backend(Protocol::LL, 1, 1 << 20),
        backend(Protocol::LL, 4, 1 << 20),
        backend(Protocol::LL128, 4, 1 << 20),
        backend(Protocol::LL128, 8, 4 << 20),
        backend(Protocol::Simple, 4, 1 << 20),
        backend(Protocol::Simple, 4, 4 << 20),
        backend(Protocol::Simple, 8, 4 << 20),
        backend(Protocol::Simple, 16, 4 << 20),
    ]
}

/// The fastest of a choice; the first of equals. A recipe that a sketch has no links for is left out.
pub fn best(
    machine: &Machine,
    collective: Collective,
    bytes: u64,
    choice: &Choice,
) -> Result<Plan, SynthError> {
    best_while(machine, collective, bytes, choice, |_| Ok(()))
}

/// The same; `step` is told how much of [`Choice::steps`] is done and stops with its error, for which it is asked in the
/// middle of a step, too.
pub fn best_while<E: From<SynthError>>(
    machine: &Machine,
    collective: Collective,
    bytes: u64,
    choice: &Choice,
    step: impl Fn(u64) -> Result<(), E>,
) -> Result<Plan, E> {
    let mut best: Option<Plan> = None;
    let mut refused = None;
    let stop = || step(0).is_err();
    for sketch in &choice.sketches {
        for recipe in &choice.recipes {
            let mut left = choice.backends.len() as u64;
            let clock = Instant::now();
            let schedule = match synthesize_unless(&stop, machine, sketch, collective, bytes, recipe) {
                Ok(schedule) => schedule,
                Err(error) => {
                    refused = Some(error);
                    step(left)?;
                    continue;
                }
            };
            let made_in = clock.elapsed();
            step(0)?;
            let runs = |backend: &&Backend| match choice.exportable.then(|| export(&schedule, backend, "")) {
                Some(Err(error)) => {
                    refused = Some(error);
                    false
                }
                _ => true,
            };
            let backends: Vec<&Backend> = choice.backends.iter().filter(runs).collect();
            let Some(executor) = Executor::new_unless(&stop, machine, sketch, &schedule) else {
                step(0)?;
                return Err(SynthError::Stopped.into());
            };
            let limit = best.as_ref().map_or(f64::INFINITY, |best| best.micros);
            let found = fastest(&stop, &executor, bytes, &backends, limit, || {
                left -= 1;
                step(1)
            })?;
            step(left)?;
            if let Some((micros, backend)) = found
                && micros < limit
            {
                let sketch = sketch.clone();
                best = Some(Plan { sketch, recipe: *recipe, schedule, backend, micros, made_in });
            }
        }
    }
    best.ok_or_else(|| refused.unwrap_or(SynthError::Collective(collective)).into())
}

/// The fastest backend and its µs, the first of equals; none where none is within the limit.
///
/// The most promising is run first, so that most of the others need not be, or not to their end; `ran` hears of each
/// that was.
fn fastest<E>(
    stop: Stop<'_>,
    executor: &Executor<'_>,
    bytes: u64,
    backends: &[&Backend],
    mut limit: f64,
    mut ran: impl FnMut() -> Result<(), E>,
) -> Result<Option<(f64, Backend)>, E> {
    let mut promising: Vec<(f64, usize)> =
        backends.iter().enumerate().map(|(at, backend)| (executor.least(bytes, backend), at)).collect();
    promising.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut fastest: Option<(f64, usize)> = None;
    for (least, at) in promising {
        if least > limit {
            break;
        }
        let micros = executor.micros_within(stop, limit, bytes, backends[at]);
        ran()?;
        let Some(micros) = micros else { continue };
        if fastest.is_none_or(|best| (micros, at) < best) {
            fastest = Some((micros, at));
            limit = micros;
        }
    }
    Ok(fastest.map(|(micros, at)| (micros, *backends[at])))
}

impl Plan {
    /// Whether the schedule is proved to do what its collective promises.
    pub fn verified(&self) -> bool {
        verify(&self.schedule, &self.sketch).is_ok()
    }

    /// How much of the links it uses.
    pub fn utilisation(&self, machine: &Machine, bytes: u64) -> Utilisation {
        let executor = Executor::new(machine, &self.sketch, &self.schedule);
        bound::utilisation(machine, &self.sketch, &executor, bytes, self.micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::NEVER;
    use crate::synthesis::synthesize;
    use dynamiccl_env::cluster::Cluster;

    /// What is not run, or not to its end, would not have been chosen.
    #[test]
    fn the_fastest_is_the_same_as_if_everything_were_run() {
        for (name, nodes) in [("dgx_a100", 1), ("dgx1_v100", 2), ("h100_4gpu", 4), ("tcp25g_1gpu", 8)] {
            let cluster = Cluster::load(name).unwrap();
            let machine = Machine::from_cluster(&cluster, nodes, cluster.gpus_per_node).unwrap();
            let choice = Choice::usual(&machine);
            for collective in [Collective::AllGather, Collective::AllReduce] {
                for bytes in [1 << 12, 1 << 20, 1 << 28] {
                    let plan = best(&machine, collective, bytes, &choice).unwrap();
                    assert_eq!(
                        (plan.micros, plan.sketch.mode, plan.recipe, plan.backend),
                        exhaustive(&machine, collective, bytes, &choice),
                        "{name} {collective} {bytes}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_search_tells_how_far_it_is_and_can_be_stopped() {
        let cluster = Cluster::load("dgx1_v100").unwrap();
        let machine = Machine::from_cluster(&cluster, 2, cluster.gpus_per_node).unwrap();
        let choice = Choice::usual(&machine);
        let told = std::cell::Cell::new(0);
        let search = |most: u64| {
            told.set(0);
            best_while(&machine, Collective::AllGather, 1 << 20, &choice, |steps| {
                told.set(told.get() + steps);
                if told.get() > most { Err(SynthError::Collective(Collective::AllGather)) } else { Ok(()) }
            })
        };
        assert!(search(u64::MAX).is_ok());
        assert_eq!(told.get(), choice.steps());
        assert!(search(3).is_err());
        assert!(told.get() < choice.steps());
    }

    /// Making one schedule of many ranks takes minutes, and running it as long.
    #[test]
    fn every_part_of_a_step_can_be_stopped() {
        let cluster = Cluster::load("dgx_a100").unwrap();
        let machine = Machine::from_cluster(&cluster, 4, cluster.gpus_per_node).unwrap();
        let sketch = Sketch::new(&machine, Mode::Full);
        let make = |stop: Stop<'_>, synthesizer| {
            let recipe = Recipe { synthesizer, ..Recipe::AWARE };
            synthesize_unless(stop, &machine, &sketch, Collective::AllGather, 1 << 20, &recipe)
        };
        for synthesizer in Synthesizer::ALL {
            assert!(matches!(make(&|| true, *synthesizer), Err(SynthError::Stopped)), "{synthesizer}");
        }
        let schedule = make(NEVER, Synthesizer::Greedy).unwrap();
        assert!(Executor::new_unless(&|| true, &machine, &sketch, &schedule).is_none());
        let executor = Executor::new(&machine, &sketch, &schedule);
        let micros =
            |stop: Stop<'_>| executor.micros_within(stop, f64::INFINITY, 1 << 20, &Backend::default());
        assert!(micros(NEVER).is_some() && micros(&|| true).is_none());
    }

    fn exhaustive(
        machine: &Machine,
        collective: Collective,
        bytes: u64,
        choice: &Choice,
    ) -> (f64, Mode, Recipe, Backend) {
        let mut all = Vec::new();
        for sketch in &choice.sketches {
            for recipe in &choice.recipes {
                let Ok(schedule) = synthesize(machine, sketch, collective, bytes, recipe) else { continue };
                let executor = Executor::new(machine, sketch, &schedule);
                for backend in &choice.backends {
                    let micros = executor.micros(bytes, backend);
                    assert!(executor.least(bytes, backend) <= micros);
                    all.push((micros, sketch.mode, *recipe, *backend));
                }
            }
        }
        all.into_iter().reduce(|best, other| if other.0 < best.0 { other } else { best }).unwrap()
    }
}
