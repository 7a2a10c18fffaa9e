//! Broadcast and reduce: a chain of ranks from or to the root.
//!
//! Benchmarks issue such calls back to back, and a root that sends need not wait for the ranks behind
//! it: what a call takes is the root's share of a running pipeline, and its first bytes go into
//! buffers that a slow network empties later. Over sockets that is what the root's clock says. Until the
//! last rank is done, a broadcast takes there what a reduce takes, of which the root is the last.

use dynamiccl_spec::math::{exp2, log2};
use dynamiccl_spec::{Collective, Protocol};

use crate::model::Call;
use crate::model::fabric::{Fabric, WIRE};
use crate::model::step::Lane;

const LL: usize = Protocol::LL.id();
const SIMPLE: usize = Protocol::Simple.id();
/// Payload bytes of one channel's buffers, by protocol (NCCL's sizes, LL without its flags).
const BUFFER: [f64; 3] = [262_144.0, 4_608_000.0, 4_194_304.0];
/// µs of a chunk's transfer that each rank of the chain repeats before the pipeline is full.
const FIRST_TRANSFER: f64 = 20.0;

/// µs of a broadcast or reduce.
pub fn time(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.rooted;
    let first = lane.share.min(lane.chunk);
    let near = lane.hop(fabric, &fabric.intra, first, lane.queue);
    let far = if fabric.crosses() { lane.hop(fabric, &fabric.inter, first, lane.queue) } else { near };
    let mean = ((fabric.ranks - fabric.nodes) * near + fabric.nodes * far) / fabric.ranks;
    let passed_on = (fabric.ranks - 2.0).max(0.0);
    let first_transfer = on_line(fabric, lane, first).max(on_host(fabric, lane, first)).min(FIRST_TRANSFER);
    // Eight chunks are under way at a time: over a network another one costs what a CPU does for it.
    let served = fabric.inter.serial[lane.protocol] * lane.queue + lane.spread;
    let per_chunk = constants.sync[lane.protocol] * if fabric.crosses() { served } else { near };
    let broadcast = call.collective == Collective::Broadcast;
    let chain = Chain { broadcast, per_chunk, rate: if over_rdma(fabric) { 1.0 } else { constants.rate } };
    start(fabric, call.collective)[lane.protocol]
        + first_in_turn(fabric, lane)
        + passed_on * constants.chain * (mean + first_transfer)
        + chain.transfer(fabric, lane)
}

/// µs that a broadcast or reduce takes to begin, by protocol.
pub fn start(fabric: &Fabric, collective: Collective) -> [f64; 3] {
    let broadcast = collective == Collective::Broadcast && !until_done(fabric);
    if broadcast { fabric.rooted.broadcast } else { fabric.rooted.reduce }
}

/// Whether a chain crosses a network that holds it up until its buffers are full, as RDMA does and sockets do not.
fn over_rdma(fabric: &Fabric) -> bool {
    fabric.crosses() && fabric.inter.held_up > 0.0
}

/// Whether such a call goes over sockets and counts until its last rank is done.
fn until_done(fabric: &Fabric) -> bool {
    fabric.crosses() && !over_rdma(fabric) && fabric.inter.absorbed <= 0.0
}

/// µs until the CPU thread of several channels has served the first chunk of each. On real ranks a second channel adds 10 to 13
/// to a reduce of 16K in LL.
fn first_in_turn(fabric: &Fabric, lane: &Lane) -> f64 {
    if !until_done(fabric) {
        return 0.0;
    }
    fabric.rooted.sync[lane.protocol] * fabric.inter.serial[lane.protocol] * (lane.queue - 1.0)
}

/// What the bytes of one call pay on their way.
struct Chain {
    broadcast: bool,
    /// µs for every chunk but the first.
    per_chunk: f64,
    /// Share of a channel's rate that it keeps. Over RDMA that is all of it once the buffers are full:
    /// AWS's own tables use LL128 up to 0.5 - 2 GiB, where less would not fill the NICs.
    rate: f64,
}

impl Chain {
    /// µs to move every channel's share. While the buffers of a chain over RDMA fill, every protocol moves
    /// wire bytes at LL's pace and channels hardly run side by side: at equal bytes per channel, LL
    /// broadcasts on 1, 2 and 4 channels take 1 : 2.6 : 3.3, and LL128 carries the wire bytes that LL does
    /// (ABCI).
    fn transfer(&self, fabric: &Fabric, lane: &Lane) -> f64 {
        let freely = self.moved(fabric, lane, lane.share);
        if !over_rdma(fabric) {
            return freely;
        }
        let filling = (lane.share * lane.channels).min(BUFFER[SIMPLE]);
        let pace = fabric.arch.channel_rate[LL] * WIRE[LL] * fabric.rooted.rate;
        let together = exp2(fabric.rooted.side_by_side.min(1.0) * log2(lane.channels));
        let filled = (filling * lane.wire / pace + self.synced(lane, filling)) / together;
        let rest = lane.share - filling / lane.channels;
        let held_up = filled + self.moved(fabric, lane, rest);
        freely + fabric.inter.held_up.min(1.0) * (held_up - freely).max(0.0)
    }

    /// µs to copy and send `bytes` of each channel. The GPU's copies overlap with the line, but not with
    /// those of a CPU.
    fn moved(&self, fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
        let waits = if self.broadcast { waits(fabric, lane, bytes) } else { 1.0 };
        let copy = bytes / (lane.rate * self.rate);
        let line = lane.blended(fabric, bytes, copy, waits * on_line(fabric, lane, bytes));
        line.max(copy + waits * on_host(fabric, lane, bytes)) + self.synced(lane, bytes)
    }

    fn synced(&self, lane: &Lane, bytes: f64) -> f64 {
        (bytes / lane.chunk - 1.0).max(0.0) * self.per_chunk
    }
}

/// µs that the slowest link of the chain needs for `bytes` of each channel.
fn on_line(fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
    match fabric.crosses() {
        true => lane.on_network(fabric, bytes),
        false => lane.on_link(bytes, fabric.intra_bandwidth),
    }
}

/// µs that the CPUs of the chain need. With two ranks nobody passes data on: a CPU sends or receives.
fn on_host(fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
    lane.on_host(fabric, bytes) * if fabric.ranks <= 2.0 { 0.5 } else { 1.0 }
}

/// How much of the transfer of `bytes` per channel the root waits for: what its buffers take costs it nothing, but ranks that
/// pass data on serve one channel's two directions in turn. With more channels each finds its buffers
/// fuller, because earlier calls have left their bytes in all of them.
pub fn waits(fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
    if !fabric.crosses() || until_done(fabric) {
        return 1.0;
    }
    let free = fabric.inter.absorbed * BUFFER[lane.protocol] / (lane.channels * lane.channels);
    let lone = fabric.ranks > 2.0 && lane.channels < 2.0;
    let kept = if lone { fabric.rooted.lone_channel.min(1.0) } else { 1.0 };
    (1.0 - free / (bytes * lane.channels).max(1.0)).max(0.0) / kept
}
