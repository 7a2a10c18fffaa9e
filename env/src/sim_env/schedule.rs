//! Which call comes next: iterations of a training job, runs of a benchmark, the lines of a trace, the calls of a sweep.

use std::sync::Arc;

use dynamiccl_spec::{SyncMode, Workload};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::curriculum::Regime;
use crate::job::{Job, Source, Traced, benchmark_loop, benchmark_run, flops_per_us};
use crate::workload::{Group, Planned, Program, Recipe, iteration};
use crate::world::draw::{shuffle, uniform};

/// The calls of a job, one after the other.
#[derive(Debug)]
pub(super) struct Schedule {
    calls: Calls,
    at: usize,
    /// Iterations done.
    pub iteration: u32,
}

#[derive(Debug)]
enum Calls {
    Training(Box<Training>),
    /// Calls of the moment, and those that come round again where it is a loop.
    Benchmark(Vec<Planned>, Vec<Planned>),
    Trace(Arc<Traced>),
}

#[derive(Debug)]
struct Training {
    recipe: Recipe,
    stage: u8,
    iterations: u32,
    flops: f64,
    /// With synchronisation at the end.
    synced: Arc<Program>,
    /// Without, for the local steps in between.
    local: Option<Arc<Program>>,
    /// Iterations since replicas have last synchronised.
    since_sync: u32,
}

/// The next call and its communicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// Position of the communicator.
    pub line: usize,
    /// The call.
    pub planned: Planned,
    /// µs of compute since the call before, beyond the call's own window.
    pub idle: f64,
    /// Updates of the model that have reached all replicas since the call before.
    pub updates: f64,
    /// Whether sync mode or tau have changed.
    pub changed: bool,
}

impl Schedule {
    /// The schedule of a job, beginning anywhere in an iteration.
    pub fn new(job: &Job, rng: &mut ChaCha8Rng) -> Self {
        let (calls, at) = match &job.source {
            Source::Training { recipe, stage, iterations, program } => {
                let flops = flops_per_us(job.cluster.gpu.sm);
                let training = Training {
                    recipe: (**recipe).clone(),
                    stage: *stage,
                    iterations: *iterations,
                    flops,
                    synced: Arc::clone(program),
                    local: local_steps(recipe, *stage, flops),
                    since_sync: 0,
                };
                (Calls::Training(Box::new(training)), rng.random_range(0..program.calls.len()))
            }
            Source::Benchmark => {
                let looped = if rng.random() { benchmark_loop(rng) } else { Vec::new() };
                (Calls::Benchmark(Vec::new(), looped), 0)
            }
            Source::Trace(traced) => (Calls::Trace(Arc::clone(traced)), 0),
            Source::Sweep(swept) => (Calls::Benchmark(Vec::new(), swept.calls()), 0),
            Source::Live(lived) => (Calls::Benchmark(Vec::new(), lived.calls()), 0),
        };
        Schedule { calls, at, iteration: 0 }
    }

    /// Sync mode and tau of the moment, written into what the job says of itself.
    pub fn describe(&self, workload: &mut Workload) {
        if let Calls::Training(training) = &self.calls {
            (workload.sync, workload.tau) = (training.recipe.sync, training.recipe.tau);
        }
    }

    /// The sync mode of the moment.
    pub fn sync(&self) -> SyncMode {
        match &self.calls {
            Calls::Training(training) => training.recipe.sync,
            Calls::Benchmark(..) | Calls::Trace(_) => SyncMode::Bsp,
        }
    }

    /// The next call; none when the job is done. `line` says which communicator a group has.
    pub fn next(
        &mut self,
        regime: Option<&Regime>,
        line: impl Fn(Group) -> Option<usize>,
        rng: &mut ChaCha8Rng,
    ) -> Option<Next> {
        let (mut idle, mut updates, mut changed) = (0.0, 0.0, false);
        loop {
            if let Some((communicator, planned)) = self.current() {
                self.at += 1;
                if let Some(line) = communicator.or_else(|| line(planned.group)) {
                    return Some(Next { line, planned, idle, updates, changed });
                }
                // A group of one rank has nobody to call.
                idle += planned.window;
                continue;
            }
            self.at = 0;
            match &mut self.calls {
                Calls::Benchmark(calls, looped) => {
                    calls.clear();
                    if looped.is_empty() {
                        benchmark_run(rng, calls);
                    } else {
                        calls.extend_from_slice(looped);
                        shuffle(calls, rng);
                    }
                }
                Calls::Trace(_) => return None,
                Calls::Training(training) => {
                    self.iteration += 1;
                    idle += training.program().tail;
                    updates += training.finish_iteration();
                    changed |= regime.is_some_and(|regime| training.change(regime, rng));
                    if self.iteration >= training.iterations {
                        return None;
                    }
                }
            }
        }
    }

    fn current(&self) -> Option<(Option<usize>, Planned)> {
        match &self.calls {
            Calls::Training(training) => training.program().calls.get(self.at).map(|call| (None, *call)),
            Calls::Benchmark(calls, _) => calls.get(self.at).map(|call| (Some(0), *call)),
            Calls::Trace(traced) => traced.calls.get(self.at).map(|(line, call)| (Some(*line), *call)),
        }
    }
}

impl Training {
    fn synchronises(&self) -> bool {
        self.recipe.synchronises(self.since_sync)
    }

    fn program(&self) -> &Program {
        match &self.local {
            Some(local) if !self.synchronises() => local,
            _ => &self.synced,
        }
    }

    /// Updates that reach all replicas with this iteration.
    fn finish_iteration(&mut self) -> f64 {
        if !self.synchronises() {
            self.since_sync += 1;
            return 0.0;
        }
        let updates = f64::from(self.since_sync + 1);
        self.since_sync = 0;
        updates
    }

    /// Changes sync mode or tau now and then, as adaptive local SGD does.
    fn change(&mut self, regime: &Regime, rng: &mut ChaCha8Rng) -> bool {
        if uniform(rng) >= regime.sync_change {
            return false;
        }
        let mut recipe = self.recipe.clone();
        recipe.sync = *regime.sync.draw(rng);
        recipe.tau = if recipe.sync == SyncMode::Local { *regime.tau.draw(rng) } else { 1 };
        let same = recipe == self.recipe;
        // Not every sync mode goes with every layout; such a draw changes nothing.
        !same && self.adopt(recipe)
    }

    fn adopt(&mut self, recipe: Recipe) -> bool {
        let Ok(synced) = iteration(&recipe, self.stage, true, self.flops) else { return false };
        let local = local_steps(&recipe, self.stage, self.flops);
        if synced.calls.is_empty() {
            return false;
        }
        (self.recipe, self.synced, self.local, self.since_sync) = (recipe, Arc::new(synced), local, 0);
        true
    }
}

/// An iteration of local SGD without synchronisation; none for the other sync modes.
fn local_steps(recipe: &Recipe, stage: u8, flops: f64) -> Option<Arc<Program>> {
    let local = recipe.sync == SyncMode::Local;
    local.then(|| iteration(recipe, stage, false, flops).ok().map(Arc::new)).flatten()
}
