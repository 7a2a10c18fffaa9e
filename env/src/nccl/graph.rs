//! What NCCL's topology search leaves behind: the few numbers per graph that its decision reads.

use serde::{Deserialize, Serialize};

/// How two devices reach each other, in NCCL's order from near to far (`topo.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PathType {
    /// The same device.
    Loc,
    /// NVLink.
    Nvl,
    /// NVLink through another GPU.
    Nvb,
    /// Chip to chip.
    C2c,
    /// One PCIe switch.
    Pix,
    /// Several PCIe switches.
    Pxb,
    /// A chip-to-chip link and PCIe.
    P2c,
    /// NVLink to a GPU beside the NIC.
    Pxn,
    /// The CPU's own PCIe bridge.
    Phb,
    /// The link between sockets.
    Sys,
    /// The network.
    Net,
    /// Not connected.
    Dis,
}

impl PathType {
    /// All of them, from near to far.
    pub const ALL: [PathType; 12] = [
        PathType::Loc,
        PathType::Nvl,
        PathType::Nvb,
        PathType::C2c,
        PathType::Pix,
        PathType::Pxb,
        PathType::P2c,
        PathType::Pxn,
        PathType::Phb,
        PathType::Sys,
        PathType::Net,
        PathType::Dis,
    ];

    /// NCCL's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            PathType::Loc => "LOC",
            PathType::Nvl => "NVL",
            PathType::Nvb => "NVB",
            PathType::C2c => "C2C",
            PathType::Pix => "PIX",
            PathType::Pxb => "PXB",
            PathType::P2c => "P2C",
            PathType::Pxn => "PXN",
            PathType::Phb => "PHB",
            PathType::Sys => "SYS",
            PathType::Net => "NET",
            PathType::Dis => "DIS",
        }
    }

    /// The next farther one, if there is one.
    pub fn farther(self) -> Option<PathType> {
        Self::ALL.get(self as usize + 1).copied()
    }
}

/// One graph of NCCL's search, reduced over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Search channels; the communicator gets twice as many.
    pub channels: u32,
    /// GB/s per search channel inside a node.
    pub bw_intra: f32,
    /// GB/s per search channel between nodes.
    pub bw_inter: f32,
    /// Worst path inside a node.
    pub type_intra: PathType,
    /// Worst path to the NIC.
    pub type_inter: PathType,
    /// NCCL's pattern id (1 balanced tree, 3 tree, 4 ring, 5 nvls, 6 collnet direct).
    pub pattern: u32,
    /// Whether every channel visits the GPUs in the same order.
    #[serde(default)]
    pub same_channels: bool,
    /// Latency that the network plugin declares, in µs; 0 for NCCL's own transports.
    #[serde(default)]
    pub latency_inter: f32,
}

/// The graphs of one communicator. `nvls_tree` reuses `nvls`, `pat` reuses `tree`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graphs {
    /// Ring.
    pub ring: Graph,
    /// Tree.
    pub tree: Graph,
    /// NVLink SHARP, where the machine has it.
    pub nvls: Option<Graph>,
    /// CollNet chain, where the search found one.
    pub collnet_chain: Option<Graph>,
    /// CollNet direct, where the search found one.
    pub collnet_direct: Option<Graph>,
}
