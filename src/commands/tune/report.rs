//! The result of `tune`, as its JSON document and its lookup file have it.

use dynamiccl_env::nccl::Realised;
use dynamiccl_env::statistics::geometric_mean;
use dynamiccl_env::tuccl::RingSetting;
use dynamiccl_spec::{Algorithm, ChunkChoice, Collective, Knobs, Pair};
use serde::{Deserialize, Serialize};

use crate::args::{Method, SpaceKind};

/// What was searched, and how: two results with the same of these can be joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Always: no number here was measured.
    pub simulated: bool,
    /// How it was searched.
    pub method: Method,
    /// What was searched.
    pub space: SpaceKind,
    /// Name of the cluster.
    pub cluster: String,
    /// Nodes.
    pub nodes: u32,
    /// Ranks.
    pub ranks: u32,
    /// Seed of the world; none is the nominal one.
    pub world: Option<u64>,
    /// Constants of the model, as they were named.
    pub constants: String,
    /// Spread of one measured call.
    pub noise: f64,
    /// Most trials for each call; none is until the method ends.
    pub budget: Option<u32>,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was searched, and how.
    #[serde(flatten)]
    pub about: About,
    /// Full measurements that were spent on all calls.
    pub trials: f64,
    /// Settings that all calls have.
    pub grid_trials: usize,
    /// The setting found, where one call was tuned.
    pub best: Option<Best>,
    /// Its true time.
    pub best_us: Option<f64>,
    /// The true time of the best of all settings, where one call was tuned.
    pub grid_best_us: Option<f64>,
    /// Time of the best of all settings over that of the one found, geometric mean over calls.
    pub quality: f64,
    /// Time of the setting that the search begins with over that of the one found, geometric mean.
    pub gain: f64,
    /// µs of searching for each full measurement, without the measurement.
    pub search_us_per_trial: f64,
    /// Each call.
    pub calls: Vec<Tuned>,
}

/// What was found for one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// Whether the search came to its end.
    pub complete: bool,
    /// Full measurements that were spent.
    pub trials: f64,
    /// Settings that there are.
    pub grid_trials: usize,
    /// The setting found.
    pub best: Best,
    /// Its true time.
    pub best_us: f64,
    /// The true time of the best of all settings.
    pub grid_best_us: f64,
    /// The true time of the setting that the search begins with.
    pub start_us: f64,
    /// Time of the best of all over that of the one found.
    pub quality: f64,
}

impl Tuned {
    /// Whether it is of this call.
    pub fn is_of(&self, call: (Collective, u64)) -> bool {
        (self.collective, self.bytes) == call
    }
}

/// A setting as it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Algorithm and protocol.
    #[serde(flatten)]
    pub pair: Pair,
    /// The most channels that run.
    pub nchannels: u32,
    /// Threads per block.
    pub nthreads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
    /// Channels asked for; none is NCCL's own count, or not a knob of this space.
    pub requested: Option<u32>,
    /// Chunk asked for, relative to NCCL's own; none where it is not a knob of this space.
    pub requested_chunk: Option<ChunkChoice>,
    /// Bytes of a channel's buffer; none where it is not a knob of this space.
    pub buffer_bytes: Option<u64>,
}

impl Best {
    /// Knobs of ours.
    pub fn own(knobs: &Knobs, realised: &Realised) -> Self {
        Best {
            pair: realised.pair,
            nchannels: realised.max_channels,
            nthreads: realised.threads,
            chunk_bytes: realised.chunk_bytes,
            requested: knobs.channels.requested(),
            requested_chunk: Some(knobs.chunk),
            buffer_bytes: None,
        }
    }

    /// A setting of MSCCL's ring.
    pub fn ring(setting: &RingSetting) -> Self {
        Best {
            pair: Pair::new(Algorithm::Ring, setting.protocol),
            nchannels: setting.channels,
            nthreads: setting.threads,
            chunk_bytes: setting.chunk_bytes(),
            requested: None,
            requested_chunk: None,
            buffer_bytes: Some(setting.buffer),
        }
    }
}

impl Report {
    /// The report of these calls; `search_us` is what searching itself took for `searched` full
    /// measurements.
    pub fn new(about: About, calls: Vec<Tuned>, search_us: f64, searched: f64) -> Self {
        let only = if let [only] = calls.as_slice() { Some(only) } else { None };
        Report {
            trials: calls.iter().map(|call| call.trials).sum(),
            grid_trials: calls.iter().map(|call| call.grid_trials).sum(),
            best: only.map(|call| call.best.clone()),
            best_us: only.map(|call| call.best_us),
            grid_best_us: only.map(|call| call.grid_best_us),
            quality: mean(&calls, |call| call.quality),
            gain: mean(&calls, |call| call.start_us / call.best_us),
            search_us_per_trial: search_us / searched.max(1.0),
            about,
            calls,
        }
    }
}

/// Geometric mean; 1 of nothing.
fn mean(calls: &[Tuned], of: impl Fn(&Tuned) -> f64) -> f64 {
    geometric_mean(calls.iter().map(of)).unwrap_or(1.0)
}
