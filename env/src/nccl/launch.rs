//! How the scheduler splits a call's bytes over channels, and the chunk in which each channel moves
//! them (`scheduleCollTasksToPlan` and `calcCollChunking` in `enqueue.cc`).

use dynamiccl_spec::{Algorithm, ChunkChoice, Collective, Pair, Protocol};

use super::comm::Communicator;
use super::nvls;

const BUFFER_STEPS: u64 = 8;
/// Bytes of one step of a channel's buffer, by protocol.
const STEP_BYTES: [u64; 3] =
    [(512 << 10) / BUFFER_STEPS, 120 * 640 * 8 * 8 / BUFFER_STEPS, (4 << 20) / BUFFER_STEPS];

/// What one call on its own launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Channels that run, each a block on one SM.
    pub channels: u32,
    /// Bytes of the first, each middle and the last channel; 0 where there is no such channel.
    pub share: [u64; 3],
    /// Payload of one step of the first channel.
    pub chunk_bytes: u64,
}

/// The largest chunk that a plugin may ask for. For NVLS this is below what NCCL checks: NCCL clamps
/// to the Simple buffer, but NVLS runs in smaller buffers of its own.
pub const fn chunk_ceiling(collective: Collective, pair: Pair) -> u64 {
    match pair.algorithm {
        Algorithm::Nvls | Algorithm::NvlsTree => nvls::CHUNK,
        _ => buffer_chunk(collective, pair),
    }
}

/// The chunk that fills the protocol's buffer.
const fn buffer_chunk(collective: Collective, pair: Pair) -> u64 {
    let step = STEP_BYTES[pair.protocol.id()];
    match pair.protocol {
        Protocol::LL => step / 2,
        Protocol::LL128 => step / 16 * 15,
        Protocol::Simple if matches!(pair.algorithm, Algorithm::Ring) && !collective.is_rooted() => 4 * step,
        Protocol::Simple => step,
    }
}

const fn align(chunk: u64, protocol: Protocol) -> u64 {
    chunk / protocol.grain() * protocol.grain()
}

fn chosen_chunk(collective: Collective, pair: Pair, own: u64, choice: ChunkChoice) -> u64 {
    // The ceiling bounds what a plugin adds, never what NCCL has chosen itself.
    let ceiling = chunk_ceiling(collective, pair).max(own);
    align(choice.apply(own, pair).min(ceiling), pair.protocol).max(pair.protocol.grain())
}

impl Communicator {
    /// What NCCL launches for a call that is alone in its group, given a budget of channels, where this chunk is asked for.
    pub fn launch(
        &self,
        collective: Collective,
        pair: Pair,
        bytes: u64,
        max_channels: u32,
        chunk: ChunkChoice,
    ) -> Launch {
        let (channels, share) = self.split(collective, pair, bytes, max_channels);
        let own = self.raw_chunk(collective, pair, bytes, channels, share[0]);
        let chunk = if self.version.has_chunk_knob() { chunk } else { ChunkChoice::Own };
        Launch { channels, share, chunk_bytes: chosen_chunk(collective, pair, own, chunk) }
    }

    /// Whether NCCL runs the pair through its CollNet path, where all channels walk the whole buffer.
    fn is_collnet(&self, pair: Pair) -> bool {
        match pair.algorithm {
            Algorithm::CollnetDirect | Algorithm::CollnetChain => true,
            Algorithm::Nvls => self.shape.nodes > 1,
            _ => false,
        }
    }

    /// Channels and their shares.
    fn split(&self, collective: Collective, pair: Pair, bytes: u64, max_channels: u32) -> (u32, [u64; 3]) {
        let limit = self.channel_limit(pair).max(1);
        let wanted = max_channels.clamp(1, limit);
        if self.is_collnet(pair) {
            return (wanted, [(bytes / u64::from(wanted)).max(1); 3]);
        }
        let ranks = u64::from(self.shape.ranks);
        let parts = if collective.is_sharded() { ranks } else { 1 };
        let traffic_per_byte = match collective {
            Collective::AllReduce => 2,
            _ => parts,
        } * if pair.protocol == Protocol::LL { 4 } else { 1 };
        let cells = Cells::new((bytes / parts).max(1), traffic_per_byte, self.version.traffic_cell());
        let (channels, share) = cells.over(wanted.into(), limit.into());
        (channels, share.map(|bytes| bytes.saturating_mul(parts)))
    }

    /// NCCL's chunk before it is rounded to grains: what a plugin is shown.
    fn raw_chunk(
        &self,
        collective: Collective,
        pair: Pair,
        bytes: u64,
        channels: u32,
        first_share: u64,
    ) -> u64 {
        // The scheduler asks once per channel, the CollNet path once for all of them.
        let (bytes, channels) = if self.is_collnet(pair) {
            (bytes, u64::from(channels))
        } else {
            (first_share.min(bytes).max(1), 1)
        };
        let full = buffer_chunk(collective, pair);
        match (pair.algorithm, pair.protocol) {
            (Algorithm::CollnetDirect, _) => {
                // A direct tree is two levels deep.
                let lanes = channels * u64::from(self.shape.collnet_heads.max(1));
                shrink(full, bytes / lanes, [(128 << 10, 128), (64 << 10, 16), (32 << 10, 16)])
            }
            (Algorithm::CollnetChain, _) => {
                let depth = u64::from(self.shape.ranks_per_node);
                let limits = [(128 << 10, 64 * depth), (64 << 10, 8 * depth), (32 << 10, depth)];
                shrink(full.min(256 << 10), bytes / channels, limits)
            }
            (Algorithm::Nvls, _) => self.nvls_chunk(full, bytes, channels),
            (Algorithm::NvlsTree, _) => self.nvls_tree_chunk(bytes, channels),
            (Algorithm::Tree, Protocol::LL128) => self.tree_ll128_chunk(full, bytes),
            (Algorithm::Pat, _) => {
                let pipeline = if collective == Collective::AllGather { 32 } else { 16 };
                halve_while(full, 64 << 10, |chunk| chunk * pipeline > bytes)
            }
            _ => full,
        }
    }

    fn nvls_chunk(&self, full: u64, bytes: u64, channels: u64) -> u64 {
        let slow_network = self.shape.nodes > 1 && self.nvls_bandwidth < 150.0;
        let most = if slow_network { 32 << 10 } else { self.nvls.chunk };
        let lanes = channels * u64::from(self.shape.nvls_heads);
        step_down(full.min(most), bytes, lanes, &[(64, 64 << 10), (8, 32 << 10), (2, 16 << 10)])
    }

    fn nvls_tree_chunk(&self, bytes: u64, channels: u64) -> u64 {
        let lanes = channels * u64::from(self.shape.nvls_heads);
        let steps = [(32, 256 << 10), (16, 128 << 10), (4, 64 << 10), (1, 32 << 10)];
        step_down(self.nvls.chunk.min(self.nvls.tree_chunk), bytes, lanes, &steps)
    }

    fn tree_ll128_chunk(&self, full: u64, bytes: u64) -> u64 {
        let ppn = self.shape.ppn();
        let steps = (f64::from(1 + self.shape.node_depth()) + 0.1 * f64::from(ppn)) as f32;
        let fewer_than = |chunk: u64, chunks: f32| ((bytes / chunk) as f32) < steps * chunks / ppn;
        let chunk = halve_while(full, 128 << 10, |chunk| fewer_than(chunk, 64.0));
        halve_while(chunk, 32 << 10, |chunk| fewer_than(chunk, 16.0))
    }
}

/// A call's bytes in the scheduler's cells.
struct Cells {
    /// Bytes of the part that is split.
    bytes: u64,
    size: u64,
    count: u64,
    traffic_per_byte: u64,
    least_traffic: u64,
}

impl Cells {
    fn new(bytes: u64, traffic_per_byte: u64, least_traffic: u64) -> Self {
        let size = least_traffic.div_ceil(traffic_per_byte).next_multiple_of(16);
        Cells { bytes, size, count: bytes.div_ceil(size), traffic_per_byte, least_traffic }
    }

    /// Cells that each channel takes when `wanted` channels share the traffic.
    fn per_channel(&self, wanted: u64) -> u64 {
        let each = match self.bytes.checked_mul(self.traffic_per_byte) {
            Some(traffic) => {
                let share = (traffic.max(self.least_traffic) / wanted).max(1);
                share.div_ceil(self.size * self.traffic_per_byte)
            }
            // NCCL's own sum would overflow; no buffer is this large.
            None => (self.bytes / wanted).div_ceil(self.size),
        };
        each.min(self.count)
    }

    /// Channels used and the bytes of the first, middle and last of them, when `wanted` may be used
    /// and `limit` exist.
    fn over(&self, wanted: u64, limit: u64) -> (u32, [u64; 3]) {
        let mut each = self.per_channel(wanted);
        let first = if limit == 1 { self.count } else { each };
        let rest = self.count - first;
        let mut middle = rest / each;
        let mut last = rest % each;
        if 1 + middle + u64::from(last > 0) > limit {
            middle = limit - 2;
            each = rest / (middle + 1);
            last = each + rest % (middle + 1);
        }
        if last == 0 && middle > 0 {
            last = each;
            middle -= 1;
        }
        // The last cell is rarely full.
        let slack = self.count * self.size - self.bytes;
        let mut share = [first * self.size, if middle > 0 { each * self.size } else { 0 }, last * self.size];
        share[if last > 0 { 2 } else { 0 }] -= slack;
        ((1 + middle + u64::from(last > 0)) as u32, share)
    }
}

/// Halves a chunk while it is above `least` and `too_large` says so.
fn halve_while(mut chunk: u64, least: u64, too_large: impl Fn(u64) -> bool) -> u64 {
    while chunk > least && too_large(chunk) {
        chunk /= 2;
    }
    chunk
}

/// Halves a chunk down to each least size while there would be fewer chunks than the number beside it.
fn shrink(chunk: u64, bytes_per_lane: u64, limits: [(u64, u64); 3]) -> u64 {
    limits.into_iter().fold(chunk, |chunk, (least, chunks)| {
        halve_while(chunk, least, |chunk| bytes_per_lane / chunk < chunks)
    })
}

/// Drops a chunk to each size in turn where `lanes` would get fewer than the number of chunks beside it.
fn step_down(chunk: u64, bytes: u64, lanes: u64, steps: &[(u64, u64)]) -> u64 {
    steps.iter().fold(
        chunk,
        |chunk, &(chunks, size)| {
            if chunk > size && bytes < chunks * lanes * chunk { size } else { chunk }
        },
    )
}
