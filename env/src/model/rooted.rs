//! Broadcast and reduce: a chain of ranks from or to the root.
//!
//! Benchmarks issue such calls back to back, and a root that sends need not wait for the ranks behind
//! it: what a call takes is the root's share of a running pipeline, and its first bytes go into
//! buffers that a slow network empties later.

use dynamiccl_spec::Collective;

use crate::model::Call;
use crate::model::fabric::Fabric;
use crate::model::step::Lane;

/// Payload bytes of one channel's buffers, by protocol (NCCL's sizes, LL without its flags).
const BUFFER: [f64; 3] = [262_144.0, 4_608_000.0, 4_194_304.0];
/// µs of a chunk's transfer that each rank of the chain repeats before the pipeline is full.
const FIRST_TRANSFER: f64 = 20.0;

/// µs of a broadcast or reduce.
pub fn time(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.rooted;
    let broadcast = call.collective == Collective::Broadcast;
    let start = if broadcast { constants.broadcast } else { constants.reduce };
    let hop = if fabric.crosses() { &fabric.inter } else { &fabric.intra };
    let first = lane.share.min(lane.chunk);
    let latency = lane.hop(fabric, hop, first, lane.queue);
    let chunks = (lane.share / lane.chunk - 1.0).max(0.0);
    let passed_on = (fabric.ranks - 2.0).max(0.0);
    let first_transfer = on_wire(fabric, lane, first).min(FIRST_TRANSFER);
    let waits = if broadcast { waits(fabric, lane) } else { 1.0 };
    start[lane.protocol]
        + passed_on * constants.chain * (latency + first_transfer)
        + chunks * constants.sync[lane.protocol] * latency
        + lane.share / (lane.rate * constants.rate)
        + waits * on_wire(fabric, lane, lane.share)
}

/// µs that the slowest rank of the chain needs for `bytes` of each channel.
fn on_wire(fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
    if !fabric.crosses() {
        return lane.on_link(bytes, fabric.intra_bandwidth);
    }
    let line = lane.on_network(fabric, bytes);
    // With two ranks nobody passes data on: a CPU either sends or receives.
    if fabric.ranks <= 2.0 {
        return line.max(lane.on_host(fabric, bytes) / 2.0);
    }
    line.max(lane.on_host(fabric, bytes))
}

/// How much of the transfer the root waits for: what its buffers take costs it nothing, but ranks that
/// pass data on serve one channel's two directions in turn.
pub fn waits(fabric: &Fabric, lane: &Lane) -> f64 {
    let constants = &fabric.rooted;
    let free = constants.absorbed * BUFFER[lane.protocol] / (lane.channels * lane.channels);
    let lone = fabric.ranks > 2.0 && lane.channels < 2.0;
    let kept = if lone { constants.lone_channel.min(1.0) } else { 1.0 };
    (1.0 - free / (lane.share * lane.channels).max(1.0)).max(0.0) / kept
}
