//! Rings: every step passes one chunk per channel to the next rank.

use dynamiccl_spec::Collective;

use crate::model::Call;
use crate::model::fabric::Fabric;
use crate::model::step::Lane;

/// µs of an allreduce, allgather or reducescatter.
pub fn time(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let passes = if call.collective == Collective::AllReduce { 2.0 } else { 1.0 };
    let steps = passes * (fabric.ranks - 1.0);
    let loop_bytes = fabric.ranks * lane.chunk;
    let full = (lane.share / loop_bytes).floor();
    let rest = lane.share - full * loop_bytes;
    let mut micros = fabric.call.launch[lane.protocol];
    if full > 0.0 {
        micros += full * steps * period(fabric, lane, lane.chunk);
    }
    if rest > 0.0 || full == 0.0 {
        micros += steps * period(fabric, lane, rest / fabric.ranks);
    }
    micros
}

/// µs between two steps. The ring is a cycle, so its period is the mean of the hops, not the worst.
fn period(fabric: &Fabric, lane: &Lane, bytes: f64) -> f64 {
    let copy = bytes / lane.rate;
    let mut wire = if fabric.local > 1.0 { lane.on_link(bytes, fabric.intra_bandwidth) } else { 0.0 };
    let near = lane.hop(fabric, &fabric.intra, bytes, lane.queue);
    if !fabric.crosses() {
        return lane.overlapped(fabric, lane.blended(fabric, bytes, copy, wire), near);
    }
    wire = wire.max(lane.on_network(fabric, bytes));
    let near = near.max(fabric.call.paced_hop[lane.protocol]);
    let far = lane.hop(fabric, &fabric.inter, bytes, lane.queue);
    let mean =
        ((fabric.ranks - fabric.nodes) * near + fabric.nodes * far) / fabric.ranks + fabric.ring_detour;
    let wired = lane.overlapped(fabric, lane.blended(fabric, bytes, copy, wire), mean);
    wired.max(mean + lane.blended(fabric, bytes, copy, lane.on_host(fabric, bytes)))
}
