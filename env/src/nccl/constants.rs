//! The numbers of NCCL's model, from `tuning.cc`, `device.h` and `enqueue.cc`.
//!
//! Latencies are µs and held as NCCL computes with them (float); bandwidth caps are GB/s and held as
//! doubles, because NCCL takes the minimum in double before it rounds.

use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};

use super::comm::CommSpec;
use super::host::CpuVendor;

/// One number per algorithm and protocol, in NCCL's order.
pub(super) type PairTable<T> = [[T; PROTOCOLS]; ALGORITHMS];

/// Most channels of a communicator.
pub(super) const MAX_CHANNELS: u32 = 64;
/// Threads of a warp.
pub(super) const WARP: u32 = 32;
/// Most threads of a block.
pub(super) const MAX_THREADS: u32 = 640;
/// Collectives that one batch of device work holds.
pub(super) const BATCH: u32 = 8;
/// Most GPUs of a node for CollNet.
pub(super) const COLLNET_ARITY: u32 = 8;
/// Most GPUs of a node for NVLS, but for allreduce.
pub(super) const NVLS_ARITY: u32 = 32;
/// NCCL's id of the plain tree pattern, which costs bandwidth.
pub(super) const PATTERN_TREE: u32 = 3;
/// Below this, GB/s of all ring channels together, Simple uses half the threads.
pub(super) const PCI_BANDWIDTH: f32 = 12.0;

/// Fixed cost of an operation.
pub(super) const BASE_LATENCY: PairTable<f32> = [
    [6.8, 14.0, 8.4],
    [6.6, 14.0, 8.4],
    [0.0; PROTOCOLS],
    [0.0; PROTOCOLS],
    [0.0; PROTOCOLS],
    [0.0; PROTOCOLS],
    [8.0; PROTOCOLS],
];

/// Cost of one hop over NVLink.
pub(super) const NVLINK_LATENCY: PairTable<f32> = [
    [0.6, 1.25, 4.0],
    [0.6, 1.9, 3.4],
    [0.0, 0.0, 3.7],
    [0.0, 0.0, 2.8],
    [0.0, 0.0, 25.0],
    [0.0, 0.0, 25.0],
    [0.0, 0.0, 4.0],
];

/// Cost of one hop inside a node without NVLink.
pub(super) const PCI_LATENCY: PairTable<f32> = [
    [1.0, 1.9, 4.0],
    [1.0, 2.5, 5.7],
    [0.0, 0.0, 3.7],
    [0.0, 0.0, 2.8],
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 4.0],
];

/// Cost of one hop over the network.
pub(super) const NETWORK_LATENCY: PairTable<f32> = [
    [5.0, 8.5, 14.0],
    [2.7, 4.0, 14.0],
    [0.0, 0.0, 31.0],
    [0.0, 0.0, 30.0],
    [0.0, 0.0, 18.0],
    [0.0, 0.0, 20.9],
    [0.0, 0.0, 14.0],
];

/// What trees lose at a size, by protocol and log2(bytes / 64).
pub(super) const TREE_CORRECTION: [[f32; 24]; PROTOCOLS] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
        1.0, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9,
        0.9, 1.0, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
        0.8, 0.9, 0.9, 0.9,
    ],
];

/// A bandwidth cap by GPU generation (Volta, Ampere, Hopper, Blackwell) and by 1, 2 or more nodes.
type Caps = [[f64; 3]; 4];

const LL_MAX: Caps = [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [141.0, 45.0, 35.0], [282.0, 90.0, 70.0]];
const RING_LL128: [[f64; 3]; 3] = [[20.0; 3], [20.0; 3], [36.7; 3]];
const TREE_LL128: Caps = [[20.0; 3], [20.0; 3], [36.7, 36.7, 29.0], [55.6, 31.67, 20.0]];
const TREE: Caps = [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0], [70.0, 42.8, 24.0]];
const NVLS_TREE: [[f64; 3]; 3] = [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [0.0, 57.7, 45.5]];
const NVLS_EFFICIENCY: [f32; 4] = [0.0, 0.0, 0.85, 0.74];

/// The bandwidth caps that hold for one communicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// LL, all channels together.
    pub ll: f64,
    /// Ring LL128, per search channel.
    pub ring_ll128: f64,
    /// Tree LL128, per search channel.
    pub tree_ll128: f64,
    /// Tree with any protocol, per search channel.
    pub tree: f64,
    /// NVLS tree, per search channel.
    pub nvls_tree: f32,
    /// The part of NVLink's bandwidth that NVLS reaches.
    pub nvls_efficiency: f32,
}

impl Limits {
    /// The caps for this communicator.
    pub fn new(spec: &CommSpec) -> Self {
        let generation = match spec.sm {
            100.. => 3,
            90.. => 2,
            80.. => 1,
            _ => 0,
        };
        let scale = spec.nodes.clamp(1, 3) as usize - 1;
        // On several nodes the host, not the GPU, bounds LL.
        let host = usize::from(matches!(spec.cpu, CpuVendor::Amd | CpuVendor::Mixed));
        let older =
            |caps: &[[f64; 3]; 3], blackwell: [f64; 3]| caps.get(generation).unwrap_or(&blackwell)[scale];
        Limits {
            ll: LL_MAX[if scale == 0 { generation } else { host }][scale],
            ring_ll128: older(&RING_LL128, spec.version.blackwell_ring_ll128()),
            tree_ll128: TREE_LL128[generation][scale],
            tree: TREE[generation][scale],
            nvls_tree: older(&NVLS_TREE, spec.version.blackwell_nvls_tree()) as f32,
            nvls_efficiency: NVLS_EFFICIENCY[generation],
        }
    }
}
