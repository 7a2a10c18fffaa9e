//! NCCL's collectives, algorithms and protocols, with NCCL's own integer ids.
//!
//! The ids are an ABI: they index the cost table that NCCL hands to a tuner plugin, so their order
//! is NCCL's (`nccl_tuner.h`) and never ours to change.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::word_enum;

word_enum! {
    /// A collective operation. The first five reach a tuner; the others are only observed.
    Collective, "collective", {
        /// One rank's buffer to all.
        Broadcast = 0 => "broadcast",
        /// The reduction of all buffers at one rank.
        Reduce = 1 => "reduce",
        /// Every rank's part to all.
        AllGather = 2 => "allgather",
        /// Every rank gets its part of the reduction.
        ReduceScatter = 3 => "reducescatter",
        /// The reduction of all buffers at all ranks.
        AllReduce = 4 => "allreduce",
        /// Every rank sends a part to every other; never reaches a tuner.
        AllToAll = 5 => "alltoall",
        /// Point to point; never reaches a tuner.
        SendRecv = 6 => "sendrecv",
        /// Every rank sends parts of different sizes to every other; never reaches a tuner.
        AllToAllV = 7 => "alltoallv",
    }
}

word_enum! {
    /// An algorithm of NCCL.
    Algorithm, "algorithm", {
        /// Double binary tree.
        Tree = 0 => "tree",
        /// Ring.
        Ring = 1 => "ring",
        /// In-network reduction with all-to-all inside the node.
        CollnetDirect = 2 => "collnet_direct",
        /// In-network reduction with chains inside the node.
        CollnetChain = 3 => "collnet_chain",
        /// Reduction inside the NVLink switch.
        Nvls = 4 => "nvls",
        /// NVLS inside the node, a tree between nodes.
        NvlsTree = 5 => "nvls_tree",
        /// Parallel aggregated trees, for allgather and reducescatter.
        Pat = 6 => "pat",
    }
}

word_enum! {
    /// A wire protocol of NCCL.
    Protocol, "protocol", {
        /// Low latency: a flag beside every 4 bytes.
        LL = 0 => "ll",
        /// Low latency with a flag in every 128-byte line.
        LL128 = 1 => "ll128",
        /// Plain copies with separate flags.
        Simple = 2 => "simple",
    }
}

impl Protocol {
    /// The unit of a chunk in bytes: NCCL rounds every chunk down to a multiple of it (`ncclProtoGrainSize`).
    pub const fn grain(self) -> u64 {
        match self {
            Protocol::LL => 16,
            Protocol::LL128 => 1920,
            Protocol::Simple => 512,
        }
    }
}

impl Collective {
    /// The collectives that NCCL tunes, in the order of their ids.
    pub const TUNED: [Collective; 5] = [
        Collective::Broadcast,
        Collective::Reduce,
        Collective::AllGather,
        Collective::ReduceScatter,
        Collective::AllReduce,
    ];

    /// Whether NCCL asks a tuner about it.
    pub const fn is_tuned(self) -> bool {
        self.id() < Collective::TUNED.len()
    }

    /// Whether ranks' data are added up, so that the order of additions can matter.
    pub const fn reduces(self) -> bool {
        matches!(self, Collective::Reduce | Collective::ReduceScatter | Collective::AllReduce)
    }

    /// Whether `nBytes` counts every rank's part (allgather, reducescatter).
    pub const fn is_sharded(self) -> bool {
        matches!(self, Collective::AllGather | Collective::ReduceScatter)
    }

    /// Whether all data flows from or to one root.
    pub const fn is_rooted(self) -> bool {
        matches!(self, Collective::Broadcast | Collective::Reduce)
    }

    /// The part of `algbw` that nccl-tests calls bus bandwidth.
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks.max(1));
        match self {
            Collective::AllReduce => 2.0 * (n - 1.0) / n,
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::AllToAll
            | Collective::AllToAllV => (n - 1.0) / n,
            Collective::Broadcast | Collective::Reduce | Collective::SendRecv => 1.0,
        }
    }
}

/// Number of algorithms in NCCL's cost table.
pub const ALGORITHMS: usize = 7;
/// Number of protocols in NCCL's cost table.
pub const PROTOCOLS: usize = 3;
/// Number of entries of NCCL's cost table.
pub const PAIRS: usize = ALGORITHMS * PROTOCOLS;

/// An algorithm with a protocol: what NCCL chooses together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    /// The algorithm.
    #[serde(rename = "algo")]
    pub algorithm: Algorithm,
    /// The protocol.
    #[serde(rename = "proto")]
    pub protocol: Protocol,
}

impl Pair {
    /// The pair of these two.
    pub const fn new(algorithm: Algorithm, protocol: Protocol) -> Self {
        Pair { algorithm, protocol }
    }

    /// Position in NCCL's row-major cost table.
    pub const fn index(self) -> usize {
        self.algorithm.id() * PROTOCOLS + self.protocol.id()
    }

    /// The pair at a position of the cost table.
    pub fn from_index(index: usize) -> Option<Self> {
        Some(Pair::new(Algorithm::from_id(index / PROTOCOLS)?, Protocol::from_id(index % PROTOCOLS)?))
    }

    /// Whether NCCL has code for this pair in a collective.
    pub const fn exists_for(self, collective: Collective) -> bool {
        let algorithm = match collective {
            Collective::Broadcast | Collective::Reduce => matches!(self.algorithm, Algorithm::Ring),
            Collective::AllGather | Collective::ReduceScatter => matches!(
                self.algorithm,
                Algorithm::Ring | Algorithm::Nvls | Algorithm::CollnetDirect | Algorithm::Pat
            ),
            Collective::AllReduce => !matches!(self.algorithm, Algorithm::Pat),
            Collective::AllToAll | Collective::SendRecv | Collective::AllToAllV => false,
        };
        let low_latency = matches!(self.algorithm, Algorithm::Ring | Algorithm::Tree);
        algorithm && (low_latency || matches!(self.protocol, Protocol::Simple))
    }

    /// All pairs in the order of NCCL's scan.
    pub fn all() -> impl Iterator<Item = Pair> {
        Algorithm::ALL.iter().flat_map(|&a| Protocol::ALL.iter().map(move |&p| Pair::new(a, p)))
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.algorithm, self.protocol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_nccls() {
        assert_eq!(Collective::AllReduce.id(), 4);
        assert_eq!(Algorithm::Pat.id(), 6);
        assert_eq!(Protocol::Simple.id(), 2);
        assert_eq!(Algorithm::ALL.len(), ALGORITHMS);
        assert_eq!(Protocol::ALL.len(), PROTOCOLS);
    }

    #[test]
    fn names_round_trip_in_every_spelling_users_know() {
        for &c in Collective::ALL {
            assert_eq!(c.name().parse::<Collective>(), Ok(c));
        }
        assert_eq!("all_reduce".parse::<Collective>(), Ok(Collective::AllReduce));
        assert_eq!("ReduceScatter".parse::<Collective>(), Ok(Collective::ReduceScatter));
        assert_eq!("NVLSTree".parse::<Algorithm>(), Ok(Algorithm::NvlsTree));
        assert_eq!("Simple".parse::<Protocol>(), Ok(Protocol::Simple));
    }

    #[test]
    fn pairs_index_the_table_row_by_row() {
        for (i, pair) in Pair::all().enumerate() {
            assert_eq!(pair.index(), i);
            assert_eq!(Pair::from_index(i), Some(pair));
        }
        assert_eq!(Pair::from_index(PAIRS), None);
    }
}
