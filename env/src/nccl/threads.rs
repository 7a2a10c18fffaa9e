//! Threads per block: NCCL's limits, its thresholds, and how a user or a policy changes them.

use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};
use dynamiccl_spec::{Algorithm, Overrides, Pair, Protocol};

use super::comm::at;
use super::constants::{MAX_THREADS, PCI_BANDWIDTH, PairTable, WARP};
use super::shape::Shape;

/// Most threads for LL and Simple.
const MAX_COPY_THREADS: u32 = 512;
const LEAST_COPY_THREADS: u32 = 2 * WARP;
const LEAST_LL128_THREADS: u32 = MAX_THREADS / 4;

/// Most threads of a pair, and the bytes per thread below which NCCL uses fewer channels and threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadLimits {
    most: PairTable<u32>,
    thresholds: PairTable<u64>,
    fixed_copy: bool,
    fixed_ll128: bool,
}

impl ThreadLimits {
    pub fn new(shape: &Shape, overrides: &Overrides) -> Self {
        let ring = shape.graph(Algorithm::Ring);
        let slow_ring = ring.bw_intra * ring.channels as f32 <= PCI_BANDWIDTH;
        let copy = overrides.threads.filter(|&n| n > 0);
        let ll128 = overrides.ll128_threads.filter(|&n| n > 0);
        let copy_threads = |own| copy.map_or(own, clamp_copy);
        let ll128_threads = ll128.map_or(MAX_THREADS, clamp_ll128);

        let tree = [copy_threads(MAX_COPY_THREADS), ll128_threads, copy_threads(MAX_COPY_THREADS)];
        let own_simple = if slow_ring { MAX_COPY_THREADS / 2 } else { MAX_COPY_THREADS };
        let ring = [tree[0], ll128_threads, copy_threads(own_simple)];
        let others = [0, 0, MAX_THREADS];
        // NCCL never sets PAT's limit, so PAT never gives up a channel.
        let pat = [0; PROTOCOLS];

        let mut thresholds = [[8, 8, 64]; ALGORITHMS];
        thresholds[Algorithm::Ring.id()][Protocol::LL.id()] *= u64::from(shape.ranks);
        for collnet in [Algorithm::CollnetDirect, Algorithm::CollnetChain] {
            thresholds[collnet.id()][Protocol::Simple.id()] = 512;
        }
        ThreadLimits {
            most: [tree, ring, others, others, others, others, pat],
            thresholds,
            fixed_copy: copy.is_some(),
            fixed_ll128: ll128.is_some(),
        }
    }

    /// Most threads of a pair.
    pub fn most(&self, pair: Pair) -> u32 {
        at(&self.most, pair)
    }

    /// Bytes per thread.
    pub fn threshold(&self, pair: Pair) -> u64 {
        at(&self.thresholds, pair)
    }

    /// Most threads of a pair when a policy asks for `requested` at launch. What the user has fixed
    /// stands.
    pub fn requested(&self, pair: Pair, requested: Option<u32>) -> u32 {
        let own = self.most(pair);
        let settable = matches!(pair.algorithm, Algorithm::Ring | Algorithm::Tree);
        match (requested.filter(|_| settable), pair.protocol) {
            (Some(threads), Protocol::LL128) if !self.fixed_ll128 => clamp_ll128(threads),
            (Some(threads), Protocol::LL | Protocol::Simple) if !self.fixed_copy => clamp_copy(threads),
            _ => own,
        }
    }
}

fn clamp_copy(threads: u32) -> u32 {
    clamp(threads, LEAST_COPY_THREADS, MAX_COPY_THREADS)
}

fn clamp_ll128(threads: u32) -> u32 {
    clamp(threads, LEAST_LL128_THREADS, MAX_THREADS)
}

/// NCCL answers a number that is no multiple of a warp with the maximum.
fn clamp(threads: u32, least: u32, most: u32) -> u32 {
    if threads.is_multiple_of(WARP) { threads.clamp(least, most) } else { most }
}
