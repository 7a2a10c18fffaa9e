//! A communicator: everything that NCCL computes once, when it is made.

use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};
use dynamiccl_spec::{Algorithm, Collective, Overrides, Pair, Protocol};

use super::constants::MAX_CHANNELS;
use super::graph::{Graph, Graphs};
use super::host::{CpuArch, CpuVendor};
use super::nvls::NvlsTuning;
use super::shape::Shape;
use super::threads::ThreadLimits;
use super::version::Version;

/// What NCCL knows about a communicator.
#[derive(Debug, Clone, PartialEq)]
pub struct CommSpec {
    /// Nodes, that is NVLink domains where there are such.
    pub nodes: u32,
    /// Ranks in each node.
    pub ranks_per_node: u32,
    /// Compute capability × 10.
    pub sm: u32,
    /// CPU vendor of the hosts.
    pub cpu: CpuVendor,
    /// CPU architecture of the hosts.
    pub arch: CpuArch,
    /// Whether the GPUs meet in an NVSwitch.
    pub nvswitch: bool,
    /// GB/s of the slowest NIC.
    pub nic_gbps: f32,
    /// The graphs of NCCL's search for this node count.
    pub graphs: Graphs,
    /// Whether in-network reduction (CollNet, SHARP) is on.
    pub collnet: bool,
    /// The release that decides.
    pub version: Version,
    /// What the user has fixed.
    pub overrides: Overrides,
}

/// One available pair of a collective.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    pub algorithm: u8,
    pub protocol: u8,
    pub latency: f32,
    pub bandwidth: f32,
    /// Below this log2(bytes / 64) the tree's size correction applies.
    pub corrected_below: u32,
    /// From this size on, the latency is a plateau factor higher.
    pub plateau_from: u64,
}

/// Pairs that one collective can have at most: three each of ring and tree, one each of the others.
const MOST_PAIRS: usize = 10;

/// The available pairs of a collective, in the order of NCCL's scan.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    entries: [Entry; MOST_PAIRS],
    len: usize,
}

impl Row {
    pub fn entries(&self) -> &[Entry] {
        &self.entries[..self.len]
    }

    fn push(&mut self, entry: Entry) {
        self.entries[self.len] = entry;
        self.len += 1;
    }
}

/// A communicator that can be asked what NCCL does. Asking never allocates.
#[derive(Debug, Clone)]
pub struct Communicator {
    pub(super) shape: Shape,
    pub(super) version: Version,
    pub(super) channels: u32,
    pub(super) nvls: NvlsTuning,
    pub(super) threads: ThreadLimits,
    pub(super) rows: [Row; Collective::TUNED.len()],
    /// What the ring's latency rises by once its plateau is reached.
    pub(super) plateau: f64,
    /// Predicted GB/s of an NVLS allreduce, on which NCCL bases its NVLS chunk.
    pub(super) nvls_bandwidth: f32,
}

impl Communicator {
    /// Does what NCCL does when a communicator is made. Any input is accepted; what cannot work is
    /// unavailable.
    pub fn new(spec: &CommSpec) -> Self {
        let shape = Shape::new(spec);
        let channels = communicator_channels(&shape, &spec.overrides);
        let mut communicator = Communicator {
            shape,
            version: spec.version,
            channels,
            nvls: NvlsTuning::new(&shape, spec.nic_gbps, spec.version, &spec.overrides),
            threads: ThreadLimits::new(&shape, &spec.overrides),
            rows: [Row::default(); Collective::TUNED.len()],
            plateau: if spec.sm < 80 { 1.9 } else { 1.4 },
            nvls_bandwidth: 0.0,
        };
        communicator.fill(spec);
        communicator
    }

    fn fill(&mut self, spec: &CommSpec) {
        for collective in Collective::TUNED {
            for pair in Pair::all() {
                if !self.shape.enables(collective, pair, spec.nvswitch, &spec.overrides) {
                    continue;
                }
                let bandwidth = self.shape.bandwidth(collective, pair);
                let latency = self.shape.latency(collective, pair);
                if bandwidth > 0.0 && latency.is_finite() && latency >= 0.0 {
                    let entry = self.entry(collective, pair, latency, bandwidth);
                    self.rows[collective.id()].push(entry);
                    if (collective, pair.algorithm) == (Collective::AllReduce, Algorithm::Nvls) {
                        self.nvls_bandwidth = bandwidth;
                    }
                }
            }
        }
    }

    fn entry(&self, collective: Collective, pair: Pair, latency: f32, bandwidth: f32) -> Entry {
        let allreduce = collective == Collective::AllReduce;
        let blackwell_x86 = self.shape.sm >= 100 && self.shape.arch == CpuArch::X86;
        let corrected_below = match pair.algorithm {
            Algorithm::Tree if allreduce => 23,
            Algorithm::NvlsTree if blackwell_x86 && self.version.corrects_nvls_tree() => 24,
            _ => 0,
        };
        let has_plateau = allreduce && pair == Pair::new(Algorithm::Ring, Protocol::Simple);
        let plateau_from = if has_plateau && self.shape.nodes > 1 {
            64 * u64::from(self.channels) * u64::from(self.shape.ranks)
        } else {
            u64::MAX
        };
        let (algorithm, protocol) = (pair.algorithm as u8, pair.protocol as u8);
        Entry { algorithm, protocol, latency, bandwidth, corrected_below, plateau_from }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.shape.ranks
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.shape.nodes
    }

    /// Ranks in each node.
    pub fn ranks_per_node(&self) -> u32 {
        self.shape.ranks_per_node
    }

    /// The release that decides.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Channels of the communicator, the most that any call but NVLS can use.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// GPUs of a node that own a part of an NVLS reduction; 0 where the machine has no NVLS.
    pub fn nvls_heads(&self) -> u32 {
        self.shape.nvls_heads
    }

    /// NCCL's graph for an algorithm, with the channels that NCCL left it; an empty graph where the
    /// search found none.
    pub fn graph(&self, algorithm: Algorithm) -> &Graph {
        self.shape.graph(algorithm)
    }
}

/// Search channels doubled, then grown and bounded as `connect.cc` does.
fn communicator_channels(shape: &Shape, overrides: &Overrides) -> u32 {
    let ring = shape.graph(Algorithm::Ring);
    let chain = shape.graph(Algorithm::CollnetChain);
    let mut channels = ring.channels.saturating_mul(2).min(MAX_CHANNELS);
    if shape.collnet && chain.bw_intra > chain.bw_inter && shape.ranks_per_node > 1 {
        channels = (channels + channels / 2).min(MAX_CHANNELS);
    }
    if shape.sm >= 90 && shape.nodes > 1 && ring.bw_intra > 45.0 && channels < 16 {
        channels *= 2;
    }
    let most = overrides.max_channels.map_or(MAX_CHANNELS, |n| n.clamp(1, MAX_CHANNELS));
    let least = overrides.min_channels.map_or(1, |n| n.clamp(1, MAX_CHANNELS));
    channels.min(most).max(least)
}

/// Where a pair stands in a table by algorithm and protocol.
pub(super) const fn at<T: Copy>(table: &[[T; PROTOCOLS]; ALGORITHMS], pair: Pair) -> T {
    table[pair.algorithm.id()][pair.protocol.id()]
}
