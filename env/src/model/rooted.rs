//! Broadcast and reduce: a chain of ranks from or to the root.
//!
//! Benchmarks issue such calls back to back, and a root that sends need not wait for the ranks behind
//! it: what a call takes is the root's share of a running pipeline, and its first bytes go into
//! buffers that a slow network empties later.

use dynamiccl_spec::Collective;

use crate::model::Call;
use crate::model::fabric::Fabric;
use crate::model::step::Lane;

/// Bytes in a MB of buffers.
const MEGABYTE: f64 = 1e6;
/// µs of a chunk's transfer that each rank of the chain repeats before the pipeline is full.
const FIRST_TRANSFER: f64 = 20.0;

/// µs of a broadcast or reduce.
pub fn time(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.constants.rooted;
    let broadcast = call.collective == Collective::Broadcast;
    let start = if broadcast { constants.broadcast } else { constants.reduce };
    let hop = if fabric.crosses() { &fabric.inter } else { &fabric.intra };
    let first = lane.share.min(lane.chunk);
    let latency = lane.hop(fabric, hop, first);
    let chunks = (lane.share / lane.chunk - 1.0).max(0.0);
    let passed_on = (fabric.ranks - 2.0).max(0.0);
    let first_transfer = on_wire(fabric, lane, first).min(FIRST_TRANSFER);
    let waits = if broadcast { waits(fabric, lane) } else { 1.0 };
    start[lane.protocol]
        + passed_on * constants.chain * (latency + first_transfer)
        + chunks * constants.sync[lane.protocol] * latency
        + lane.share / lane.rate
        + waits * on_wire(fabric, lane, lane.share)
}

/// µs that the slowest link of the chain needs for `bytes` of each channel.
fn on_wire(fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
    let bandwidth = if fabric.crosses() { fabric.inter_bandwidth } else { fabric.intra_bandwidth };
    // A rank that passes data on serves one channel's two directions in turn.
    let lone = fabric.ranks > 2.0 && lane.channels < 2.0 && fabric.crosses();
    let kept = if lone { fabric.constants.rooted.lone_channel.min(1.0) } else { 1.0 };
    lane.on_link(bytes, bandwidth * kept)
}

/// Share of the transfer that the root waits for: what its buffers take costs it nothing.
fn waits(fabric: &Fabric, lane: &Lane) -> f64 {
    if !fabric.crosses() {
        return 1.0;
    }
    let free = fabric.constants.rooted.absorbed * MEGABYTE / (lane.channels * lane.wire * lane.wire);
    (1.0 - free / (lane.share * lane.channels).max(1.0)).max(0.0)
}
