//! NCCL's graph search, so that a machine that nobody dumped still gets the graphs that NCCL would
//! decide with.
//!
//! NCCL tries fixed speeds from fast to slow, and at each speed looks for as many channels as fit on
//! the links; then it tries whether those channels could be faster. This follows the same ladder over
//! the same tables (NCCL 2.30.7), on a topology that was dumped or laid out from a few facts. It
//! leaves out what no table of ours needs: several ranks on one GPU, rails and planes, and the
//! environment variables that steer the search.

mod build;
mod climb;
mod follow;
mod ladder;
mod order;
mod paths;
mod routes;
mod speeds;
mod start;
mod system;
mod walk;

use super::topology::Topology;
use crate::nccl::graph::{Graph, Graphs, PathType};
use climb::Climb;
use routes::Routes;
use system::System;

/// Bytes of stack for the deepest walk that the time limits allow, with room to spare.
const STACK: usize = 128 << 20;
/// Rings that NCCL looks for at most; it doubles them later.
const MAX_RINGS: usize = 32;

/// What a channel looks like, with NCCL's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    BalancedTree = 1,
    Tree = 3,
    Ring = 4,
    Nvls = 5,
    CollnetDirect = 6,
}

/// What is asked of a search, and what it found.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    pattern: Pattern,
    collnet: bool,
    min_channels: usize,
    max_channels: usize,
    channels: usize,
    bw_intra: f32,
    bw_inter: f32,
    latency_inter: f32,
    type_intra: PathType,
    type_inter: PathType,
    same_channels: bool,
    /// Whether a ring may leave by another NIC than it came by.
    cross_nic: bool,
    hops: i64,
}

impl Shape {
    /// A search for this many channels of a pattern.
    fn new(pattern: Pattern, min_channels: usize, max_channels: usize) -> Shape {
        Shape {
            pattern,
            collnet: false,
            min_channels,
            max_channels,
            channels: 0,
            bw_intra: 0.0,
            bw_inter: 0.0,
            latency_inter: 0.0,
            type_intra: PathType::Loc,
            type_inter: PathType::Pix,
            same_channels: pattern != Pattern::Nvls,
            cross_nic: false,
            hops: 0,
        }
    }

    /// Whether this is better than what was found before.
    fn beats(&self, best: &Shape, gpus: usize) -> bool {
        if self.channels < self.min_channels {
            return false;
        }
        let total = |shape: &Shape, rate: f32| shape.channels as f32 * rate;
        if self.pattern == Pattern::Nvls {
            // Its channels are the GPUs that pull from the switch: the more the better.
            return (self.channels > best.channels && self.channels <= gpus)
                || total(self, self.bw_inter) > total(best, best.bw_inter);
        }
        let (new, old) = (total(self, self.bw_intra), total(best, best.bw_intra));
        let shorter =
            self.pattern == best.pattern && self.cross_nic == best.cross_nic && self.hops < best.hops;
        new > old || (new == old && shorter)
    }

    /// The values that NCCL's decision reads; nothing where no channel was found.
    fn graph(&self) -> Option<Graph> {
        (self.channels > 0).then_some(Graph {
            channels: self.channels as u32,
            bw_intra: self.bw_intra,
            bw_inter: self.bw_inter,
            type_intra: self.type_intra,
            type_inter: self.type_inter,
            pattern: self.pattern as u32,
            same_channels: self.same_channels,
            latency_inter: self.latency_inter,
        })
    }
}

/// How many nodes a communicator spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// One.
    One,
    /// Several that are alike.
    Several,
}

/// The graphs that NCCL finds on a topology; none where there is nothing to search: a single GPU on
/// one node, or no NIC between several.
pub fn graphs(topology: &Topology, span: Span) -> Option<Graphs> {
    // A walk over all channels of a large domain is deeper than the stack that a caller may have.
    std::thread::scope(|scope| {
        let roomy =
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || search(topology, span));
        match roomy.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(found)) => found,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => search(topology, span),
        }
    })
}

fn search(topology: &Topology, span: Span) -> Option<Graphs> {
    let system = System::new(topology);
    let inter = span == Span::Several;
    let gpus = system.gpus.len();
    if gpus == 0 || (inter && system.nets.is_empty()) || (!inter && gpus == 1) {
        return None;
    }
    let routes = Routes::new(&system);
    let climb = Climb::new(&system, &routes, inter);
    let ring = climb.run(Shape::new(Pattern::Ring, 1, MAX_RINGS));
    let as_many = ring.channels;
    let tree = climb.run(Shape::new(Pattern::BalancedTree, as_many, as_many));
    let collnet = inter && system.nets.iter().any(|&net| system.net(net).is_some_and(|facts| facts.collnet));
    let offloaded = |shape: Shape| {
        collnet.then(|| climb.run(Shape { collnet: true, ..shape })).and_then(|shape| shape.graph())
    };
    let nvls = (system.nvswitch.is_some() && system.sm() >= 90 && gpus > 1)
        .then(|| climb.run(Shape::new(Pattern::Nvls, 1, gpus.min(32))));
    Some(Graphs {
        ring: ring.graph()?,
        tree: tree.graph()?,
        nvls: nvls.and_then(|shape| shape.graph()),
        collnet_chain: offloaded(Shape::new(Pattern::Tree, as_many, as_many)),
        collnet_direct: offloaded(Shape::new(Pattern::CollnetDirect, 1, gpus.min(8))),
    })
}
