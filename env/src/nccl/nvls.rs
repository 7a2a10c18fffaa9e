//! Channels and chunk sizes of NVLS, which NCCL chooses per communicator (`nvls.cc`).

use dynamiccl_spec::{Algorithm, Overrides};

use super::constants::MAX_CHANNELS;
use super::graph::PathType;
use super::shape::Shape;
use super::version::Version;

/// NVLS chunk where nothing says otherwise. Its buffers are cut for the chunk chosen at init, so this
/// is also the largest one that is safe on every release.
pub(super) const CHUNK: u64 = 128 << 10;

const HOPPER_CHANNELS: u32 = 16;
const BLACKWELL_CHANNELS: u32 = 32;
const BLACKWELL_NODE_CHANNELS: u32 = 24;

/// GB/s of a 400 Gb/s NIC and of an 800 Gb/s NIC as NCCL counts them.
const NIC_400: f32 = 48.0;
const NIC_800: f32 = 96.0;

/// What NCCL fixes for NVLS when a communicator is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NvlsTuning {
    pub channels: u32,
    pub chunk: u64,
    pub tree_chunk: u64,
}

impl NvlsTuning {
    pub fn new(shape: &Shape, nic_gbps: f32, version: Version, overrides: &Overrides) -> Self {
        let several = shape.nodes > 1;
        let own = if shape.sm >= 100 && several && version.tunes_nvls() {
            blackwell(shape, nic_gbps)
        } else {
            let channels = match shape.sm {
                100.. if several => BLACKWELL_CHANNELS,
                100.. => BLACKWELL_NODE_CHANNELS,
                _ => HOPPER_CHANNELS,
            };
            NvlsTuning { channels, chunk: CHUNK, tree_chunk: tree_chunk(shape.nodes) }
        };
        let asked = overrides.nvls_channels.filter(|&n| n > 0).unwrap_or(own.channels);
        let most = overrides.max_ctas.filter(|&n| n > 0).map_or(MAX_CHANNELS, |n| n.min(MAX_CHANNELS));
        let least = overrides.min_ctas.unwrap_or(1).clamp(1, most);
        NvlsTuning { channels: asked.clamp(least, most), ..own }
    }
}

fn tree_chunk(nodes: u32) -> u64 {
    if nodes >= 4 { 64 << 10 } else { CHUNK }
}

/// Blackwell on several nodes, from 2.30 on.
fn blackwell(shape: &Shape, nic: f32) -> NvlsTuning {
    let per_node = shape.ranks_per_node;
    let near = shape.graph(Algorithm::Nvls).type_inter <= PathType::Pxb;
    let tuned = |channels, chunk_kib: u64, tree_kib: u64| NvlsTuning {
        channels,
        chunk: chunk_kib << 10,
        tree_chunk: tree_kib << 10,
    };
    if shape.nodes == 2 && nic >= NIC_400 {
        return match per_node {
            ..=4 => tuned(32, 256, 256),
            16.. => tuned(32, 128, 64),
            ..=8 if near && nic < NIC_800 => tuned(32, 128, 64),
            _ => tuned(32, 128, 128),
        };
    }
    match per_node {
        ..=8 if nic >= NIC_800 => tuned(24, 256, 256),
        ..32 if nic >= NIC_800 => tuned(32, 128, 128),
        _ if nic >= NIC_800 => tuned(32, 128, 64),
        _ if nic >= NIC_400 => tuned(24, 128, if near { 64 } else { 128 }),
        _ => NvlsTuning { channels: BLACKWELL_CHANNELS, chunk: CHUNK, tree_chunk: tree_chunk(shape.nodes) },
    }
}
