//! PAT and CollNet: algorithms whose cost is the network's.

use dynamiccl_spec::Algorithm;

use crate::model::Call;
use crate::model::fabric::{Fabric, ceil_log2};
use crate::model::step::Lane;

/// µs of an allgather or reducescatter by parallel aggregated trees.
pub fn pat(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.pat;
    let rounds = f64::from(ceil_log2(fabric.ranks as u32));
    let first = (lane.share / fabric.ranks).min(lane.chunk);
    let round = lane.hop(fabric, &fabric.inter, first, 0.0) * constants.round;
    // Small parts travel together, one message a round; large ones take a message per chunk.
    let messages = rounds.max((fabric.ranks - 1.0) / fabric.ranks * lane.share / lane.chunk);
    let served = messages * fabric.inter.serial[lane.protocol] * lane.queue * constants.round;
    let moved = call.bytes as f64 * (fabric.ranks - 1.0) / fabric.ranks;
    let copy = moved / (lane.rate * lane.channels);
    let on_host = 2.0 * moved / fabric.host_bandwidth;
    let line = lane.on_network(fabric, moved / lane.channels);
    let wired = lane
        .blended(fabric, lane.share, copy, line)
        .max(served + lane.blended(fabric, lane.share, copy, on_host));
    fabric.call.launch[lane.protocol]
        + rounds * round
        + fabric.tree_detour
        + constants.linear * fabric.ranks
        + wired / constants.share
}

/// µs of a reduction inside the network's switches.
pub fn collnet(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.collnet;
    let near = lane.hop(fabric, &fabric.intra, lane.share.min(lane.chunk), 1.0);
    let inside = match call.pair.algorithm {
        Algorithm::CollnetDirect => 2.0 * (near + constants.per_gpu * (fabric.local - 1.0)),
        _ => 2.0 * (fabric.local - 1.0) * near,
    };
    let busy = (lane.chunk / lane.rate)
        .max(lane.on_link(lane.chunk, fabric.inter_bandwidth))
        .max(2.0 * lane.on_link(lane.chunk, fabric.intra_bandwidth));
    let chunks = lane.share / lane.chunk;
    fabric.call.launch[lane.protocol] + inside + constants.start + fabric.tree_detour + chunks * busy
}
