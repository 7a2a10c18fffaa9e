//! The result of `decide`, as its JSON document has it.

use dynamiccl_env::nccl::{Realised, Version};
use dynamiccl_spec::features::CallContext;
use dynamiccl_spec::{Collective, Decision, Knobs, Pair, Path};
use serde::Serialize;

use super::launch::Recommendation;

/// What a policy chooses on one machine.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the policy.
    pub policy: String,
    /// Where it was read from.
    pub file: String,
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
    /// The release that is asked.
    pub nccl_version: Version,
    /// Whether the policy was told the topology.
    pub told: bool,
    /// Constants of the model, as they were named.
    pub constants: String,
    /// What to set before a job starts.
    pub launch: Recommendation,
    /// The answers, by collective and size.
    pub answers: Vec<Answer>,
}

/// The answer about one call.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The collective.
    pub collective: Collective,
    /// Its size, as nccl-tests counts it.
    pub bytes: u64,
    /// NCCL's own choice.
    pub nccl: Launch,
    /// The policy's.
    pub chosen: Launch,
    /// The knobs that the policy asks for.
    pub knobs: Knobs,
    /// Why.
    pub reason: String,
    /// What the policy believes that its choice takes.
    pub estimate_us: f32,
    /// NCCL's simulated time ÷ the policy's.
    pub speedup: f64,
}

/// A choice as NCCL runs it.
#[derive(Debug, Serialize)]
pub struct Launch {
    /// Algorithm and protocol.
    #[serde(flatten)]
    pub pair: Pair,
    /// Channels that run.
    pub nchannels: u32,
    /// Threads per block.
    pub nthreads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
    /// What NCCL predicts for the pair.
    pub predicted_us: f32,
    /// What it takes in the simulator's nominal world.
    pub time_us: f64,
}

impl Answer {
    /// A decision beside NCCL's own, each as NCCL runs it and with its simulated time.
    pub fn new(
        call: &CallContext,
        decision: &Decision,
        own: (Realised, f64),
        chosen: (Realised, f64),
    ) -> Self {
        Answer {
            collective: call.collective,
            bytes: call.bytes,
            nccl: Launch::new(call, own),
            chosen: Launch::new(call, chosen),
            knobs: decision.knobs,
            reason: decision.reason.to_string(),
            estimate_us: match decision.knobs.path {
                Path::Synthesised => call.synthesised.unwrap_or_default(),
                Path::Nccl | Path::InNetwork => decision.micros.get(chosen.0.pair).unwrap_or_default(),
            },
            speedup: own.1 / chosen.1,
        }
    }

    /// Whether the policy's choice runs as NCCL's own does.
    pub fn is_own(&self) -> bool {
        let launch = |of: &Launch| (of.pair, of.nchannels, of.nthreads, of.chunk_bytes);
        launch(&self.nccl) == launch(&self.chosen) && !self.is_scheduled()
    }

    /// Whether the policy takes a synthesised schedule, of which NCCL's knobs say nothing.
    pub fn is_scheduled(&self) -> bool {
        self.knobs.path == Path::Synthesised
    }
}

impl Launch {
    fn new(call: &CallContext, (realised, time_us): (Realised, f64)) -> Self {
        let Realised { pair, channels, threads, chunk_bytes, .. } = realised;
        let predicted_us = call.table.get(pair).unwrap_or_default();
        Launch { pair, nchannels: channels, nthreads: threads, chunk_bytes, predicted_us, time_us }
    }
}
