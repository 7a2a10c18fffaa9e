//! From a sketch to a schedule.
//!
//! Synthesizers know how to spread chunks from their owners to all ranks. Everything else follows:
//! ReduceScatter is that backwards over the reversed sketch, AllReduce one after the other, Broadcast and
//! Reduce the same with one owner. What a synthesizer believes about shared links ([`Assume`]) decides how
//! good its schedule is; only the executor knows the truth.

mod belief;
mod direct;
mod greedy;
mod ring;
mod tree;

use dynamiccl_spec::Collective;
use dynamiccl_spec::words::word_enum;

use crate::error::SynthError;
use crate::machine::Machine;
use crate::schedule::{Phase, Schedule, Send};
use crate::sketch::Sketch;
use crate::stop::{NEVER, Stop};
use belief::Belief;

word_enum! {
    /// How a schedule is made.
    Synthesizer, "synthesizer", {
        /// A free link takes any chunk that its end lacks, step by step.
        Greedy => "greedy",
        /// Each chunk goes along the tree that reaches everybody first, given what the others load.
        Tree => "tree",
        /// Each chunk goes round a ring.
        Ring => "ring",
        /// Each chunk goes straight to every other node, and from there inside.
        Direct => "direct",
    }
}

word_enum! {
    /// What a synthesizer takes to be shared.
    Assume, "assumption", {
        /// Nothing: every connection has its full rate (TACCL on two nodes).
        Connection => "conn",
        /// What a GPU sends to other nodes (TACCL on more).
        Gpu => "gpu",
        /// The NIC, as it is.
        Nic => "nic",
    }
}

/// How to make a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The synthesizer.
    pub synthesizer: Synthesizer,
    /// What it takes to be shared.
    pub assume: Assume,
    /// Whether a chunk enters a node only once.
    pub local: bool,
    /// Chunks of each rank.
    pub chunks: u32,
    /// Seed of its ties.
    pub seed: u64,
}

impl Recipe {
    /// The greedy synthesizer that knows of NICs.
    pub const AWARE: Recipe =
        Recipe { synthesizer: Synthesizer::Greedy, assume: Assume::Nic, local: true, chunks: 1, seed: 0 };

    /// The shortest ways over NICs.
    pub const DIRECT: Recipe = Recipe { synthesizer: Synthesizer::Direct, ..Recipe::AWARE };

    /// The greedy synthesizer that knows of no sharing on two nodes and of GPUs' on more, as TACCL.
    pub const fn unaware(nodes: usize) -> Recipe {
        let assume = if nodes > 2 { Assume::Gpu } else { Assume::Connection };
        Recipe { assume, local: false, ..Recipe::AWARE }
    }

    /// The same with as many chunks of each rank.
    pub const fn with_chunks(self, chunks: u32) -> Recipe {
        Recipe { chunks, ..self }
    }
}

/// A chunk on its way to one more rank, with the times that its synthesizer believes; picoseconds, so that
/// equal times are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spread {
    start: u64,
    end: u64,
    chunk: u32,
    from: u32,
    to: u32,
}

/// What is spread.
#[derive(Debug, Clone, Copy)]
struct Task {
    ranks: u32,
    chunks: u32,
    rooted: bool,
    chunk_bytes: f64,
}

impl Task {
    fn total(&self) -> u32 {
        self.ranks * self.chunks
    }

    fn owner(&self, chunk: u32) -> u32 {
        if self.rooted { crate::schedule::ROOT } else { chunk / self.chunks }
    }
}

/// Makes the schedule of a collective over the links of a sketch.
pub fn synthesize(
    machine: &Machine,
    sketch: &Sketch,
    collective: Collective,
    bytes: u64,
    recipe: &Recipe,
) -> Result<Schedule, SynthError> {
    synthesize_unless(NEVER, machine, sketch, collective, bytes, recipe)
}

/// The same, unless it is to stop.
pub fn synthesize_unless(
    stop: Stop<'_>,
    machine: &Machine,
    sketch: &Sketch,
    collective: Collective,
    bytes: u64,
    recipe: &Recipe,
) -> Result<Schedule, SynthError> {
    if !collective.is_tuned() {
        return Err(SynthError::Collective(collective));
    }
    let (ranks, chunks) = (machine.ranks() as u32, recipe.chunks.max(1));
    let chunk_bytes = bytes as f64 / f64::from(ranks * chunks);
    let task = Task { ranks, chunks, rooted: collective.is_rooted(), chunk_bytes };
    let mut schedule = Schedule { collective, ranks, chunks, sends: Vec::new(), planned_us: 0.0 };
    if collective.reduces() {
        let mut spread = spread(stop, machine, &sketch.reversed(), &task, recipe)?;
        let end = spread.iter().map(|s| s.end).max().unwrap_or(0);
        spread.sort_unstable_by_key(|s| (end - s.end, end - s.start, s.chunk, s.from, s.to));
        let back = |s: &Spread| Send { phase: Phase::Reduce, chunk: s.chunk, from: s.to, to: s.from };
        schedule.sends.extend(spread.iter().map(back));
        schedule.planned_us += end as f64 * 1e-6;
    }
    if collective != Collective::ReduceScatter && collective != Collective::Reduce {
        let mut spread = spread(stop, machine, sketch, &task, recipe)?;
        spread.sort_unstable();
        let end = spread.iter().map(|s| s.end).max().unwrap_or(0);
        let forth = |s: &Spread| Send { phase: Phase::Gather, chunk: s.chunk, from: s.from, to: s.to };
        schedule.sends.extend(spread.iter().map(forth));
        schedule.planned_us += end as f64 * 1e-6;
    }
    Ok(schedule)
}

fn spread(
    stop: Stop<'_>,
    machine: &Machine,
    sketch: &Sketch,
    task: &Task,
    recipe: &Recipe,
) -> Result<Vec<Spread>, SynthError> {
    let belief = Belief::new(machine, sketch, recipe.assume, task.chunk_bytes);
    match recipe.synthesizer {
        Synthesizer::Greedy => greedy::spread(stop, machine, sketch, &belief, task, recipe),
        Synthesizer::Tree => tree::spread(stop, machine, sketch, &belief, task, recipe),
        Synthesizer::Ring => ring::spread(stop, machine, sketch, &belief, task),
        Synthesizer::Direct => direct::spread(stop, machine, sketch, &belief, task),
    }
}
