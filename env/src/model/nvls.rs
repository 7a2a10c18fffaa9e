//! NVLS: the switch reduces. NVLS tree: the switch inside a node, a tree between nodes.

use dynamiccl_spec::{Algorithm, Collective};

use crate::model::Call;
use crate::model::fabric::Fabric;
use crate::model::step::Lane;

/// µs of an allreduce, allgather or reducescatter.
pub fn time(fabric: &Fabric, call: &Call, lane: &Lane) -> f64 {
    let constants = &fabric.nvls;
    let link = fabric.intra_bandwidth * fabric.arch.nvls * kind(fabric, call.collective);
    let mut rate = link.min(lane.channels * channel_rate(fabric, lane, link));
    let mut micros = constants.start;
    if fabric.crosses() {
        rate = rate.min(fabric.inter_bandwidth.min(fabric.host_bandwidth / 2.0) * network(fabric, call));
        let far = lane.hop(fabric, &fabric.inter, lane.chunk, 1.0) * fabric.inter.tree[lane.protocol];
        let per_head = fabric.inter_bandwidth / fabric.heads;
        let hops = if call.pair.algorithm == Algorithm::NvlsTree { 2.0 * fabric.depth } else { 2.0 };
        let first = lane.share.min(lane.chunk);
        micros += hops * (far + 0.5 * first / per_head) + 2.0 * fabric.tree_detour;
    }
    let round = lane.channels * fabric.heads * lane.chunk;
    let bytes = lane.share * lane.channels;
    let rounds = (bytes / round).ceil().max(1.0);
    let fill = constants.fill * (bytes.min(round) / rate + constants.sync);
    micros + fill + bytes / rate + rounds * constants.sync
}

/// Bytes per µs of one channel. However slow a world draws its channels, the number that NCCL launches
/// fills the switch: default runs above 256 MiB are within a few percent of the measured peak.
fn channel_rate(fabric: &Fabric, lane: &Lane, link: f64) -> f64 {
    (lane.rate * fabric.nvls.channel_share).max(lane.threads.min(1.0) * link / fabric.arch.nvls_channels)
}

/// Algorithm bandwidth relative to an allreduce's: the others cross the switch once.
fn kind(fabric: &Fabric, collective: Collective) -> f64 {
    match collective {
        Collective::AllReduce => 1.0,
        _ => fabric.nvls.half * (fabric.local - 1.0).max(1.0) / fabric.local,
    }
}

/// Share of the NICs' bandwidth that payload gets: two nodes exchange once, more pass data on.
fn network(fabric: &Fabric, call: &Call) -> f64 {
    match call.pair.algorithm {
        Algorithm::NvlsTree if fabric.nodes > 2.0 => fabric.nvls.tree_share,
        Algorithm::NvlsTree => 2.0,
        _ => 1.0,
    }
}
