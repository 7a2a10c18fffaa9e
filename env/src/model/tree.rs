//! Double binary trees: chunks go up to the root and down again, each tree with half of the channels.

use crate::model::fabric::Fabric;
use crate::model::step::Lane;

/// Bytes after which a hop inside a node passes data on: LL and LL128 need not wait for the whole
/// chunk, a warp of LL128 passes on its own lines. The network sends whole chunks.
const GRANULE: [f64; 3] = [2048.0, 1920.0, f64::INFINITY];
/// How often a chunk is copied at its channel's rate on each edge between nodes. LL and LL128 write it out
/// before it leaves and read it after it came; a CPU checks LL's flags in between: on ABCI and Polaris
/// 64 KiB more of LL cost two to three times a copy on every edge.
const COPIES: [f64; 3] = [3.0, 2.0, 1.0];

/// µs of an allreduce.
pub fn time(fabric: &Fabric, lane: &Lane) -> f64 {
    let constants = &fabric.tree;
    let rate = lane.rate * constants.rate[lane.protocol];
    let first = lane.share.min(lane.chunk);
    let chunks = lane.share / lane.chunk;
    // While the trees fill, a hop waits for its own tree and for what of the other shares its way.
    let shared = |alone: f64, all: f64| alone + (all - alone) * fabric.inter.overlap.min(1.0);
    let near = lane.hop(fabric, &fabric.intra, first, 1.0) * fabric.intra.tree[lane.protocol];
    let far =
        lane.hop(fabric, &fabric.inter, first, shared(1.0, lane.queue)) * fabric.inter.tree[lane.protocol];
    let copied = first.min(GRANULE[lane.protocol]) / rate;
    let on_wire = first * lane.wire / fabric.inter_bandwidth.min(fabric.host_bandwidth);
    let wired = shared(on_wire, lane.channels * on_wire);
    let fill = 2.0
        * ((fabric.local - 1.0) * (near + copied)
            + fabric.depth * (far + COPIES[lane.protocol] * first / rate + wired)
            + fabric.tree_detour);
    let sync = constants.sync * if fabric.crosses() { near.max(far / 8.0) } else { near };
    let more = (chunks - 1.0).max(0.0);
    fabric.call.launch[lane.protocol]
        + fill
        + more * (period(fabric, lane, rate) + sync)
        + if lane.protocol == 2 { 0.0 } else { first / rate }
}

/// µs between two whole chunks.
fn period(fabric: &Fabric, lane: &Lane, rate: f64) -> f64 {
    let mut busy = lane.chunk / rate;
    if fabric.local > 1.0 {
        busy = busy.max(2.0 * lane.on_link(lane.chunk, fabric.intra_bandwidth));
    }
    if fabric.crosses() {
        let sends = sends(fabric.nodes, lane.channels);
        let serial = fabric.inter.serial[lane.protocol] * fabric.inter.tree[lane.protocol] * lane.queue;
        busy = busy.max(sends * lane.on_network(fabric, lane.chunk));
        busy = busy.max(sends * (serial + lane.on_host(fabric, lane.chunk)));
    }
    busy
}

/// How often the busiest node sends each byte: once up and twice down, but a rank that is inside one of
/// the two trees is a leaf of the other, so two channels balance what one cannot.
pub fn sends(nodes: f64, channels: f64) -> f64 {
    let (inside, leaf) = match nodes {
        n if n <= 2.0 => (1.0, 1.0),
        n if n <= 3.0 => (2.0, 1.0),
        _ => (3.0, 1.0),
    };
    let balanced = (channels / 2.0).floor() * 2.0;
    ((inside + leaf) / 2.0 * balanced + inside * (channels - balanced)) / channels
}
