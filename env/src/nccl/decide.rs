//! What NCCL does with one call: the cost table, the pair it picks, channels and threads.

use dynamiccl_spec::table::UNAVAILABLE;
use dynamiccl_spec::{Algorithm, Collective, CostTable, Pair, Protocol};

use super::comm::{Communicator, Entry};
use super::constants::{BATCH, MAX_THREADS, TREE_CORRECTION, WARP};

/// NCCL's own answer to one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// Algorithm and protocol.
    pub pair: Pair,
    /// The time that NCCL predicts for it, µs.
    pub predicted_us: f32,
    /// The most channels that the scheduler may use (NCCL's `nMaxChannels`).
    pub channels: u32,
    /// Threads per block.
    pub threads: u32,
}

impl Communicator {
    /// NCCL's predicted times for a call of `bytes` (nccl-tests' size) among `pipe_ops` pipelined ones.
    pub fn cost_table(&self, collective: Collective, bytes: u64, pipe_ops: u32) -> CostTable {
        let mut table = CostTable::default();
        let Some(row) = self.rows.get(collective.id()) else {
            return table;
        };
        let call = Call::new(bytes, pipe_ops);
        for entry in row.entries() {
            let time = self.time(entry, &call);
            table.0[usize::from(entry.algorithm)][usize::from(entry.protocol)] =
                if time.is_finite() { time } else { UNAVAILABLE };
        }
        table
    }

    fn time(&self, entry: &Entry, call: &Call) -> f32 {
        let mut bandwidth = entry.bandwidth;
        if call.log_size < entry.corrected_below {
            bandwidth *= TREE_CORRECTION[usize::from(entry.protocol)][call.log_size as usize];
        }
        let mut latency = entry.latency;
        if call.bytes >= entry.plateau_from {
            latency = (f64::from(latency) * self.plateau) as f32;
        }
        let ring = entry.algorithm == Algorithm::Ring as u8;
        let repeats = if ring { call.ring_repeats } else { call.batch_repeats };
        latency * repeats + call.size / (1000.0 * bandwidth)
    }

    /// NCCL's channels (`nMaxChannels`) and threads for a pair.
    pub fn channels_threads(&self, pair: Pair, bytes: u64) -> (u32, u32) {
        self.channels_threads_with(pair, bytes, self.threads.most(pair))
    }

    /// The same with another limit of threads.
    pub(super) fn channels_threads_with(&self, pair: Pair, bytes: u64, most: u32) -> (u32, u32) {
        let threshold = self.threads.threshold(pair);
        let per_channel = u64::from(most) * threshold;
        match pair.algorithm {
            Algorithm::CollnetDirect => {
                (self.collnet_direct_channels(bytes, per_channel), with_sync_warps(pair, most))
            }
            Algorithm::Nvls | Algorithm::NvlsTree => (self.channel_limit(pair), with_sync_warps(pair, most)),
            _ => {
                // As many channels as get a full load each.
                let loaded = bytes.checked_div(per_channel).unwrap_or(u64::MAX);
                let channels = u64::from(self.channels).min(loaded.max(1));
                let mut threads = most;
                while threads > 0
                    && threads.is_multiple_of(128)
                    && bytes < channels * u64::from(threads) * threshold
                {
                    threads /= 2;
                }
                (channels as u32, with_sync_warps(pair, threads))
            }
        }
    }

    /// NCCL's stepwise descent for CollNet direct, which halves its threshold on the way.
    fn collnet_direct_channels(&self, bytes: u64, per_channel: u64) -> u32 {
        let mut per_channel = per_channel * u64::from(self.shape.collnet_heads);
        let mut channels = self.channels;
        let mut step = 16;
        let mut light = true;
        while step >= 1 && light {
            loop {
                light = bytes < u64::from(channels) * per_channel;
                if !light || channels <= step {
                    break;
                }
                if channels == step + step / 2 {
                    per_channel /= 2;
                }
                channels -= 1;
            }
            step /= 2;
        }
        channels
    }

    /// The most channels that a pair can use on this communicator.
    pub fn channel_limit(&self, pair: Pair) -> u32 {
        match pair.algorithm {
            Algorithm::Nvls if self.shape.nodes > 1 => self.nvls.channels.min(self.channels),
            Algorithm::Nvls | Algorithm::NvlsTree => self.nvls.channels,
            _ => self.channels,
        }
    }

    /// NCCL's decision for a call, or nothing where no pair is available.
    pub fn decide(&self, collective: Collective, bytes: u64, pipe_ops: u32) -> Option<Decision> {
        self.decide_from(&self.cost_table(collective, bytes, pipe_ops), bytes)
    }

    /// NCCL's decision over a table that is already there.
    pub fn decide_from(&self, table: &CostTable, bytes: u64) -> Option<Decision> {
        let (pair, predicted_us) = table.best()?;
        let (channels, threads) = self.channels_threads(pair, bytes);
        Some(Decision { pair, predicted_us, channels, threads })
    }
}

/// What all entries of one cost table share.
struct Call {
    bytes: u64,
    size: f32,
    log_size: u32,
    ring_repeats: f32,
    batch_repeats: f32,
}

impl Call {
    fn new(bytes: u64, pipe_ops: u32) -> Self {
        let pipe_ops = pipe_ops.max(1);
        Call {
            bytes,
            size: bytes as f32,
            // Below 64 bytes nothing is corrected.
            log_size: (bytes >> 6).checked_ilog2().unwrap_or(u32::MAX),
            ring_repeats: pipe_ops as f32,
            batch_repeats: pipe_ops.div_ceil(BATCH) as f32,
        }
    }
}

fn with_sync_warps(pair: Pair, threads: u32) -> u32 {
    let extra = if pair == Pair::new(Algorithm::Ring, Protocol::Simple) { WARP } else { 0 };
    match pair.algorithm {
        // Both always take a full block, whatever the limits say.
        Algorithm::Tree | Algorithm::Pat => MAX_THREADS,
        _ => (threads + extra).max(3 * WARP),
    }
}
