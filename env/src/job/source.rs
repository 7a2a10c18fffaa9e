//! Where a job's calls come from: a training program, a benchmark, a recorded trace, a recorded sweep, or real ranks.

use std::sync::Arc;

use dynamiccl_spec::{Collective, Parallelism, Role};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::lived::Lived;
use crate::swept::Swept;
use crate::workload::{Placement, Planned, Program, Recipe};

/// The octaves in which a benchmark's sizes are.
const BENCHMARK_OCTAVES: [u32; 2] = [10, 30];
/// Sizes of an octave, evenly apart, of which half of a benchmark's calls have one, the others its first: jobs seldom send powers
/// of two, and NCCL's choices change between them.
const BENCHMARK_BETWEEN: u64 = 64;
/// Equal calls in a row in a benchmark.
const BENCHMARK_RUN: [u32; 2] = [4, 32];
/// Different calls of a benchmark that goes round and round.
const BENCHMARK_LOOP: [u32; 2] = [6, 16];

/// Where calls come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// One rank of a training job.
    Training {
        /// The job.
        recipe: Box<Recipe>,
        /// The pipeline stage of the rank.
        stage: u8,
        /// Iterations until it is done.
        iterations: u32,
        /// One iteration of it, with synchronisation at its end.
        program: Arc<Program>,
    },
    /// Any collective in any size over all ranks: in runs of equal calls, or a few of them round and round.
    Benchmark,
    /// A recorded job.
    Trace(Arc<Traced>),
    /// Every call of a recorded sweep round and round, with the times that were measured there.
    Sweep(Arc<Swept>),
    /// Every call round and round on real ranks.
    Live(Arc<Lived>),
}

/// A recorded job as one iteration of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// How its communicators lie on nodes.
    pub placements: Vec<Placement>,
    /// Its calls, each with the position of its communicator.
    pub calls: Vec<(usize, Planned)>,
}

impl Source {
    /// How its model is spread.
    pub fn parallelism(&self) -> Parallelism {
        match self {
            Source::Training { recipe, .. } => recipe.layout.parallelism(),
            Source::Benchmark | Source::Trace(_) | Source::Sweep(_) | Source::Live(_) => Parallelism::Unknown,
        }
    }
}

/// A run of equal calls, as nccl-tests makes them.
pub(crate) fn benchmark_run(rng: &mut ChaCha8Rng, calls: &mut Vec<Planned>) {
    let call = benchmark_call(rng);
    let [few, many] = BENCHMARK_RUN;
    calls.extend((0..rng.random_range(few..=many)).map(|_| call));
}

/// The calls of a benchmark that goes round and round, as the loop of a training program does: no two of them of
/// nearly the same size.
pub(crate) fn benchmark_loop(rng: &mut ChaCha8Rng) -> Vec<Planned> {
    let [few, many] = BENCHMARK_LOOP;
    let tries = rng.random_range(few..=many);
    let mut calls: Vec<Planned> = Vec::new();
    for _ in 0..tries {
        let call = benchmark_call(rng);
        let near = |other: &Planned| other.bytes.ilog2() / 2 == call.bytes.ilog2() / 2;
        if !calls.iter().any(near) {
            calls.push(call);
        }
    }
    calls
}

fn benchmark_call(rng: &mut ChaCha8Rng) -> Planned {
    let collective = Collective::TUNED[rng.random_range(0..Collective::TUNED.len())];
    let [least, most] = BENCHMARK_OCTAVES;
    let whole = 1u64 << rng.random_range(least..=most);
    let between = if rng.random_range(0..2) == 0 { rng.random_range(0..BENCHMARK_BETWEEN) } else { 0 };
    let bytes = (whole + whole / BENCHMARK_BETWEEN * between).min(1 << most);
    // Some benchmarks put several calls into one group.
    let pipelined = if rng.random_range(0..4) == 0 { 1 << rng.random_range(1..=3) } else { 1 };
    Planned { pipelined, ..Planned::alone(collective, bytes, Role::Unknown) }
}
