//! PAT and CollNet: algorithms whose cost is the network's.

use dynamiccl_spec::Algorithm;

use crate::model::Call;
use crate::model::fabric::{Fabric, ceil_log2};
use crate::model::step::Lane;

/// µs of an allgather or reducescatter by parallel aggregated trees.
pub fn pat(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.constants.pat;
    let rounds = f64::from(ceil_log2(fabric.ranks as u32));
    let first = (lane.share / fabric.ranks).min(lane.chunk);
    let round = lane.hop(fabric, &fabric.inter, first) * constants.round;
    let rate = fabric.inter_bandwidth.min(lane.rate * lane.channels) * constants.share;
    let moved = call.bytes as f64 * (fabric.ranks - 1.0) / fabric.ranks;
    fabric.constants.call.launch[lane.protocol]
        + rounds * round
        + fabric.tree_detour
        + constants.linear * fabric.ranks
        + moved / rate
}

/// µs of a reduction inside the network's switches.
pub fn collnet(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.constants.collnet;
    let near = lane.hop(fabric, &fabric.intra, lane.share.min(lane.chunk));
    let inside = match call.pair.algorithm {
        Algorithm::CollnetDirect => 2.0 * (near + constants.per_gpu * (fabric.local - 1.0)),
        _ => 2.0 * (fabric.local - 1.0) * near,
    };
    let busy = (lane.chunk / lane.rate)
        .max(lane.on_link(lane.chunk, fabric.inter_bandwidth))
        .max(2.0 * lane.on_link(lane.chunk, fabric.intra_bandwidth));
    let chunks = lane.share / lane.chunk;
    fabric.constants.call.launch[lane.protocol] + inside + constants.start + fabric.tree_detour + chunks * busy
}
