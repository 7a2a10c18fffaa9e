//! Sketch, synthesizer, chunks and backend as one space, for whoever searches it.
//!
//! A point is one index for each of seven dimensions; a search sees nothing else. [`Task`] says what a point
//! takes on a machine. [`table`] keeps what was found, [`select`] picks among it while a job runs.

pub mod select;
pub mod table;

use std::cell::RefCell;
use std::collections::HashMap;

use dynamiccl_spec::words::word_enum;
use dynamiccl_spec::{Collective, Protocol};
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::execute::Executor;
use crate::machine::Machine;
use crate::sketch::{Mode, Sketch};
use crate::synthesis::{Assume, Recipe, Synthesizer, synthesize};

word_enum! {
    /// A synthesizer with what it takes to be shared.
    Variant, "synthesizer", {
        /// Greedy matching as TACCL would assume: connections on two nodes, GPUs on more.
        Greedy => "greedy",
        /// Greedy matching that knows of NICs and lets a chunk enter a node once.
        GreedyNic => "greedy-nic",
        /// Load-aware trees, as TACCL would assume.
        Tree => "tree",
        /// Load-aware trees that know of NICs.
        TreeNic => "tree-nic",
        /// Rings.
        Ring => "ring",
    }
}

impl Variant {
    /// How it makes schedules on a machine of so many nodes.
    pub fn recipe(self, nodes: usize, chunks: u32) -> Recipe {
        let plain = Recipe::unaware(nodes).with_chunks(chunks);
        let aware = Recipe { assume: Assume::Nic, local: true, ..plain };
        let of = |recipe: Recipe, synthesizer| Recipe { synthesizer, ..recipe };
        match self {
            Variant::Greedy => plain,
            Variant::GreedyNic => aware,
            Variant::Tree => of(plain, Synthesizer::Tree),
            Variant::TreeNic => of(aware, Synthesizer::Tree),
            Variant::Ring => of(plain, Synthesizer::Ring),
        }
    }
}

/// Dimensions of the space.
pub const DIMENSIONS: usize = 7;
/// Chunks of a rank.
pub const CHUNKS: [u32; 4] = [1, 2, 4, 8];
/// Channels.
pub const CHANNELS: [u32; 5] = [1, 2, 4, 8, 16];
/// Threads of a block.
pub const THREADS: [u32; 3] = [128, 256, 512];
/// Bytes of a buffer.
pub const BUFFERS: [u64; 4] = [256 << 10, 1 << 20, 4 << 20, 8 << 20];

/// Values of each dimension: protocol, sketch, synthesizer, chunks, channels, threads, buffer.
pub const SIZES: [usize; DIMENSIONS] = [
    Protocol::ALL.len(),
    Mode::ALL.len(),
    Variant::ALL.len(),
    CHUNKS.len(),
    CHANNELS.len(),
    THREADS.len(),
    BUFFERS.len(),
];
/// Whether the values of a dimension have an order.
pub const ORDERED: [bool; DIMENSIONS] = [false, false, false, true, true, true, true];
/// MSCCL's own setting with a full mesh: where a search begins.
pub const START: [usize; DIMENSIONS] = [2, 0, 0, 0, 0, 2, 2];

/// What a point means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Setting {
    /// The sketch.
    pub sketch: Mode,
    /// The synthesizer.
    pub synthesizer: Variant,
    /// Chunks of each rank.
    pub chunks: u32,
    /// The backend.
    #[serde(flatten)]
    pub backend: Backend,
}

impl Setting {
    /// The setting of a point; indices beyond a dimension are its last.
    pub fn at(point: [usize; DIMENSIONS]) -> Setting {
        let [protocol, sketch, synthesizer, chunks, channels, threads, buffer] =
            std::array::from_fn(|d| point[d].min(SIZES[d] - 1));
        Setting {
            sketch: Mode::ALL[sketch],
            synthesizer: Variant::ALL[synthesizer],
            chunks: CHUNKS[chunks],
            backend: Backend {
                protocol: Protocol::ALL[protocol],
                channels: CHANNELS[channels],
                threads: THREADS[threads],
                buffer: BUFFERS[buffer],
            },
        }
    }

    /// Where a search begins.
    pub fn start() -> Setting {
        Setting::at(START)
    }
}

/// A sketch, a synthesizer and its chunks: what one schedule is made of.
type Source = (Mode, Variant, u32);

/// One call on one machine. Schedules are made when they are first asked for.
pub struct Task<'a> {
    machine: &'a Machine,
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    made: RefCell<HashMap<Source, Option<Executor<'a>>>>,
}

impl<'a> Task<'a> {
    /// A call on a machine.
    pub fn new(machine: &'a Machine, collective: Collective, bytes: u64) -> Self {
        Task { machine, collective, bytes, made: RefCell::default() }
    }

    /// µs that a setting takes; infinite where its sketch has no such schedule.
    pub fn micros(&self, setting: &Setting) -> f64 {
        let source = (setting.sketch, setting.synthesizer, setting.chunks);
        let mut made = self.made.borrow_mut();
        let executor = made.entry(source).or_insert_with(|| self.make(source));
        executor.as_ref().map_or(f64::INFINITY, |executor| executor.micros(self.bytes, &setting.backend))
    }

    fn make(&self, (mode, variant, chunks): Source) -> Option<Executor<'a>> {
        let sketch = Sketch::new(self.machine, mode);
        let recipe = variant.recipe(self.machine.nodes(), chunks);
        let schedule = synthesize(self.machine, &sketch, self.collective, self.bytes, &recipe).ok()?;
        Some(Executor::new(self.machine, &sketch, &schedule))
    }

    /// Every setting for which `kept` holds, with its time, fastest first.
    pub fn grid(&self, kept: impl Fn(&Setting) -> bool) -> Vec<(Setting, f64)> {
        let settings = points().map(Setting::at).filter(kept);
        let mut timed: Vec<(Setting, f64)> =
            settings.map(|setting| (setting, self.micros(&setting))).collect();
        timed.sort_by(|a, b| a.1.total_cmp(&b.1));
        timed
    }
}

/// Every point; the last dimension runs fastest.
pub fn points() -> impl Iterator<Item = [usize; DIMENSIONS]> {
    (0..SIZES.iter().product()).map(|mut index: usize| {
        let mut point = [0; DIMENSIONS];
        for d in (0..DIMENSIONS).rev() {
            point[d] = index % SIZES[d];
            index /= SIZES[d];
        }
        point
    })
}
