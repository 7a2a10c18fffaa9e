//! The result of `simulate`, as its JSON document has it.

use dynamiccl_env::nccl::{Decision, Version};
use dynamiccl_env::sim::Setting;
use dynamiccl_spec::{ChunkChoice, Collective, CostTable, Pair};
use serde::Serialize;

/// Every setting of one call.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Always: no number here was measured.
    pub simulated: bool,
    /// Name of the cluster.
    pub cluster: String,
    /// What it is.
    pub description: String,
    /// The tier of its most distant ranks.
    pub tier: u8,
    /// Nodes.
    pub nodes: u32,
    /// Ranks.
    pub ranks: u32,
    /// The collective.
    pub collective: Collective,
    /// Its size, as nccl-tests counts it.
    pub bytes: u64,
    /// The release that decides.
    pub nccl_version: Version,
    /// NCCL's variables that were given.
    pub env: Vec<String>,
    /// Seed of the world; none is the nominal one.
    pub world: Option<u64>,
    /// Constants of the model, as they were named.
    pub constants: String,
    /// Topology dump that the cluster was made from.
    pub topo: Option<String>,
    /// Dump that NCCL's graphs were taken from.
    pub graph: Option<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// NCCL's choice.
    pub nccl: Own,
    /// The fastest setting; never slower than NCCL's choice, which is one of them.
    pub best: Timed,
    /// How many times as long NCCL's choice takes as the fastest.
    pub headroom: f64,
    /// The synthesised schedule; none without a runtime, or where there is none for the call.
    pub schedule: Option<Schedule>,
    /// Every distinct setting, fastest first.
    pub knobs: Vec<Timed>,
    /// How many of them the text lists.
    #[serde(skip)]
    pub top: usize,
}

/// NCCL's choice: what it predicts and what it takes.
#[derive(Debug, Serialize)]
pub struct Own {
    /// Algorithm and protocol.
    #[serde(flatten)]
    pub pair: Pair,
    /// The most channels that NCCL lets the call use.
    pub nchannels: u32,
    /// Channels that run.
    pub launched: u32,
    /// Threads per block.
    pub nthreads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
    /// What NCCL predicts.
    pub predicted_us: f32,
    /// What it takes.
    pub time_us: f64,
    /// What NCCL predicts for every available pair.
    pub table: Vec<Predicted>,
}

/// A synthesised schedule in the place of NCCL's algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Schedule {
    /// What it is predicted to take.
    pub predicted_us: f32,
    /// What it takes.
    pub time_us: f64,
}

/// One entry of NCCL's cost table.
#[derive(Debug, Serialize)]
pub struct Predicted {
    /// Algorithm and protocol.
    #[serde(flatten)]
    pub pair: Pair,
    /// What NCCL predicts.
    pub time_us: f32,
}

/// One setting as NCCL runs it, and its true time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timed {
    /// Algorithm and protocol.
    #[serde(flatten)]
    pub pair: Pair,
    /// Channels that run.
    pub nchannels: u32,
    /// Threads per block.
    pub nthreads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
    /// What it takes.
    pub time_us: f64,
    /// Channels asked for; none is NCCL's own count.
    pub requested: Option<u32>,
    /// Threads asked for; none is NCCL's own count.
    pub requested_nthreads: Option<u32>,
    /// Chunk asked for, relative to NCCL's own.
    pub requested_chunk: ChunkChoice,
}

impl Own {
    /// What NCCL decides, and what that takes.
    pub fn new(decision: &Decision, own: &Setting, table: &CostTable) -> Self {
        Own {
            pair: decision.pair,
            nchannels: decision.channels,
            launched: own.realised.channels,
            nthreads: decision.threads,
            chunk_bytes: own.realised.chunk_bytes,
            predicted_us: decision.predicted_us,
            time_us: own.micros,
            table: table.available().map(|(pair, time_us)| Predicted { pair, time_us }).collect(),
        }
    }
}

impl Timed {
    /// A setting of the simulator.
    pub fn new(setting: &Setting) -> Self {
        Timed {
            pair: setting.realised.pair,
            nchannels: setting.realised.channels,
            nthreads: setting.realised.threads,
            chunk_bytes: setting.realised.chunk_bytes,
            time_us: setting.micros,
            requested: setting.knobs.channels.requested(),
            requested_nthreads: setting.knobs.threads.requested(),
            requested_chunk: setting.knobs.chunk,
        }
    }

    /// Whether this is what NCCL runs by itself.
    pub fn is_launch_of(&self, own: &Own) -> bool {
        let launch = (self.pair, self.nchannels, self.nthreads, self.chunk_bytes);
        launch == (own.pair, own.launched, own.nthreads, own.chunk_bytes)
    }
}

/// The settings by their time; of equals, those with fewer channels first.
pub fn fastest_first(settings: &[Setting]) -> Vec<Timed> {
    let mut timed: Vec<Timed> = settings.iter().map(Timed::new).collect();
    timed.sort_by(|a, b| a.time_us.total_cmp(&b.time_us).then(a.nchannels.cmp(&b.nchannels)));
    timed
}
