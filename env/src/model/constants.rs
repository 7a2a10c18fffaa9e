//! The constants of the performance model: value, range and source of each.
//!
//! They live in a data file, not in code, so that a fit can rewrite them, a second file can leave a
//! data set out, and a reader sees beside every number where it comes from. A world draws each
//! constant from its range; the nominal world takes the values as they are. What is in a file is declared here;
//! how one is read and written is not.

mod file;

use serde::{Deserialize, Serialize};

use crate::cluster::{InterLink, IntraLink};
use crate::measure::Clock;
pub use file::{ConstantsError, ConstantsFile};

/// Smallest and largest factor by which a world may change a constant.
pub type Range = [f64; 2];

/// Something of the constants file that becomes plain numbers.
pub trait Entry {
    /// The plain numbers.
    type Value;
    /// The numbers, each times what `factor` answers for its range.
    fn resolve(&self, factor: &mut impl FnMut(Range) -> f64) -> Self::Value;
    /// Shows every number with its dotted name.
    fn visit(&mut self, name: &str, each: &mut impl FnMut(&str, &mut f64));
}

/// One number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scalar {
    /// The nominal value.
    pub value: f64,
    /// What a world may make of it.
    pub range: Range,
    /// Where the value and the range come from.
    pub source: String,
}

/// One number per protocol: LL, LL128, Simple.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Triple {
    /// The nominal values.
    pub value: [f64; 3],
    /// What a world may make of each.
    pub range: Range,
    /// Where the values and the range come from.
    pub source: String,
}

impl Entry for Scalar {
    type Value = f64;

    fn resolve(&self, factor: &mut impl FnMut(Range) -> f64) -> f64 {
        self.value * factor(self.range)
    }

    fn visit(&mut self, name: &str, each: &mut impl FnMut(&str, &mut f64)) {
        each(name, &mut self.value);
    }
}

impl Entry for Triple {
    type Value = [f64; 3];

    fn resolve(&self, factor: &mut impl FnMut(Range) -> f64) -> [f64; 3] {
        self.value.map(|value| value * factor(self.range))
    }

    fn visit(&mut self, name: &str, each: &mut impl FnMut(&str, &mut f64)) {
        for (value, protocol) in self.value.iter_mut().zip(["ll", "ll128", "simple"]) {
            each(&format!("{name}.{protocol}"), value);
        }
    }
}

/// Declares a section twice: as it stands in the file and as plain numbers.
macro_rules! sections {
    ($($(#[$doc:meta])* $entry:ident => $type:ident { $($(#[$fdoc:meta])* $field:ident : $kind:ident,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $entry { $($(#[$fdoc])* pub $field: $kind,)* }

            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq)]
            pub struct $type { $($(#[$fdoc])* pub $field: <$kind as Entry>::Value,)* }

            impl Entry for $entry {
                type Value = $type;

                fn resolve(&self, factor: &mut impl FnMut(Range) -> f64) -> $type {
                    $type { $($field: self.$field.resolve(factor),)* }
                }

                fn visit(&mut self, name: &str, each: &mut impl FnMut(&str, &mut f64)) {
                    let dot = if name.is_empty() { "" } else { "." };
                    $(self.$field.visit(&format!("{name}{dot}{}", stringify!($field)), each);)*
                }
            }
        )*
    };
}

sections! {
    /// Every constant of the model.
    Sections => Constants {
        /// What holds for every collective.
        call: CallEntry,
        /// What only trees have.
        tree: TreeEntry,
        /// What only NVLS has.
        nvls: NvlsEntry,
        /// What only PAT has.
        pat: PatEntry,
        /// What only CollNet has.
        collnet: CollnetEntry,
        /// What only broadcast and reduce have: a chain that is filled once.
        rooted: RootedsEntry,
        /// The kinds of links.
        hop: HopsEntry,
        /// The generations of GPUs.
        arch: ArchsEntry,
        /// What the model does not know, by what the communicator crosses.
        residual: ResidualsEntry,
        /// What changes from call to call, by what the communicator crosses.
        weather: WeathersEntry,
        /// How far real bandwidths are from a cluster file's.
        bandwidth: BandwidthEntry,
        /// How networks are wired, by class; a fat tree is neutral.
        wiring: WiringsEntry,
        /// What runs beside a call.
        around: AroundEntry,
        /// What only transfers between pairs of ranks have.
        transfer: TransferEntry,
        /// What only switches that aggregate have.
        aggregation: AggregationEntry,
    }
    /// How a class of networks carries what algorithms send, beside a fat tree.
    WiringEntry => Wiring {
        /// Latency of a hop to a ring's neighbour, relative to a fat tree's.
        ring_hop: Scalar,
        /// Share of a node's bandwidth that rings keep.
        ring_share: Scalar,
        /// Hops that an edge of a tree takes beyond a fat tree's.
        tree_hops: Scalar,
        /// Such hops more for each unit of the square root of the nodes.
        tree_growth: Scalar,
        /// µs of such a hop.
        hop: Scalar,
        /// Share of a node's bandwidth that trees keep.
        tree_share: Scalar,
        /// Share of a node's bandwidth that all-to-all traffic keeps.
        alltoall_share: Scalar,
    }
    /// The classes of networks that are not fat trees.
    WiringsEntry => Wirings {
        /// Servers forward for each other.
        bcube: WiringEntry,
        /// A random graph of switches.
        jellyfish: WiringEntry,
        /// A grid that wraps around.
        torus: WiringEntry,
        /// Boards joined by row and column switches.
        hammingmesh: WiringEntry,
        /// Optical circuits, set per job.
        sip_ocs: WiringEntry,
        /// Direct links computed for one job.
        topoopt: WiringEntry,
        /// Several of these.
        mixed: WiringEntry,
    }
    /// What runs beside a call.
    AroundEntry => Around {
        /// Others on the same GPU.
        sharing: SharingEntry,
        /// Communicators of the same job on the same node.
        siblings: SiblingsEntry,
        /// Classes of coflows.
        priority: PriorityEntry,
        /// Compute kernels on the same GPU.
        compute: ComputeEntry,
        /// Libraries other than NCCL.
        library: LibrariesEntry,
    }
    /// Others on the same GPU.
    SharingEntry => Sharing {
        /// Share of a channel's rate left beside others under MPS.
        mps_rate: Scalar,
        /// A launch through the MPS server, relative to a direct one.
        mps_launch: Scalar,
        /// Share of a GPU's memory bandwidth and cache that a MIG slice has.
        mig_share: Scalar,
        /// µs that a launch or a hop waits for the GPU's turn under time slicing.
        slice_wait: Scalar,
        /// Share of the time that a time-sliced rank has the GPU.
        slice_share: Scalar,
    }
    /// Communicators of the same job on the same node.
    SiblingsEntry => Siblings {
        /// What each sibling takes of a rank's CPU, relative to the rank's own work.
        host: Scalar,
    }
    /// Classes of coflows.
    PriorityEntry => Priority {
        /// Share of others' load that the first class sees.
        first: Scalar,
        /// Others' load as the last class sees it, relative to its share.
        last: Scalar,
    }
    /// Compute kernels on the same GPU.
    ComputeEntry => Compute {
        /// Share of a channel's rate left beside compute.
        rate: Triple,
        /// Most that the tail of a wave adds to compute when channels take SMs.
        tail: Scalar,
        /// Share of the SMs at which half of that is reached.
        tail_half: Scalar,
    }
    /// A library beside NCCL.
    LibraryEntry => Library {
        /// Launches and hops, relative to NCCL's.
        latency: Scalar,
        /// Bandwidth inside a node, relative to NCCL's.
        node: Scalar,
        /// Bandwidth between nodes, relative to NCCL's.
        network: Scalar,
    }
    /// Libraries other than NCCL.
    LibrariesEntry => Libraries {
        /// MPI.
        mpi: LibraryEntry,
        /// Gloo.
        gloo: LibraryEntry,
        /// MSCCL.
        msccl: LibraryEntry,
        /// SCCL.
        sccl: LibraryEntry,
        /// TACCL.
        taccl: LibraryEntry,
        /// Any other.
        other: LibraryEntry,
    }
    /// What only transfers between pairs of ranks have.
    TransferEntry => Transfer {
        /// A launch, relative to a collective's.
        launch: Scalar,
        /// Latency of a hop between nodes, relative to a ring's: the receiver has to ask first.
        hop: Scalar,
        /// Share of a hop's latency that each further peer adds.
        peer: Scalar,
        /// Bytes that one channel carries before another is added.
        part: Scalar,
        /// Channels at most.
        channels: Scalar,
        /// Share of a link's bandwidth that pairs reach.
        share: Scalar,
        /// What a flow that has its path to itself within a rack loses beyond many racks, relative to what is left.
        lone_flow: Scalar,
    }
    /// What only switches that aggregate have.
    AggregationEntry => Aggregation {
        /// µs that a packet stays in the switch, and the host needs to make and take it.
        start: Scalar,
        /// MB that the switch's pool holds of one job.
        pool: Scalar,
    }
    /// What holds for every collective.
    CallEntry => Call {
        /// µs from launch to the first poll.
        launch: Triple,
        /// µs per hop for every doubling of the channels: the slowest of them counts.
        spread: Triple,
        /// µs per hop once a step carries data.
        data: Triple,
        /// Bytes per step and channel at which half of that is paid.
        data_scale: Triple,
        /// Share of a hop's latency that stays exposed however long the transfers are.
        exposed: Triple,
        /// Share of the quicker of two stages, copy and wire, that the slower one does not hide.
        blend: Triple,
        /// Threads at which a channel reaches half of its rate.
        half_threads: Triple,
        /// Least µs of a hop inside a node when the ring also crosses the network.
        paced_hop: Triple,
        /// Payload GB/s that LL carries between nodes at most: every word waits for its flag.
        ll_between: Scalar,
        /// Factor on a channel's rate once all buffers together leave the cache.
        spilled: Scalar,
    }
    /// What only trees have.
    TreeEntry => Tree {
        /// Share of a channel's rate left when its threads serve both directions.
        rate: Triple,
        /// Share of a hop's latency that every further chunk pays.
        sync: Scalar,
    }
    /// What only NVLS has.
    NvlsEntry => Nvls {
        /// µs before the first chunk.
        start: Scalar,
        /// µs of synchronisation per chunk round.
        sync: Scalar,
        /// Rounds that fill the pipeline.
        fill: Scalar,
        /// Share of a channel's rate that multicast leaves.
        channel_share: Scalar,
        /// Bandwidth of allgather and reducescatter relative to an allreduce's.
        half: Scalar,
        /// Share of the network's bandwidth that the tree between nodes keeps.
        tree_share: Scalar,
    }
    /// What only PAT has.
    PatEntry => Pat {
        /// A round's latency relative to a ring step's.
        round: Scalar,
        /// µs per rank.
        linear: Scalar,
        /// Share of the bandwidth that is kept.
        share: Scalar,
    }
    /// What only CollNet has.
    CollnetEntry => Collnet {
        /// µs of the in-network reduction.
        start: Scalar,
        /// µs per GPU of the node in the direct form.
        per_gpu: Scalar,
    }
    /// What only broadcast and reduce have.
    RootedEntry => Rooted {
        /// µs before the first chunk of a broadcast.
        broadcast: Triple,
        /// µs before the first chunk of a reduce.
        reduce: Triple,
        /// Share of a hop's latency that each rank of the chain adds.
        chain: Scalar,
        /// Power of their number by which channels together outrun one until the chain's buffers are full.
        side_by_side: Scalar,
        /// Share of a hop's latency that every chunk pays.
        sync: Triple,
        /// Share of the bandwidth that one channel alone keeps through ranks that pass data on.
        lone_channel: Scalar,
        /// Share of a channel's rate left where data is passed on.
        rate: Scalar,
    }
    /// Broadcast and reduce by what their chain crosses.
    RootedsEntry => Rooteds {
        /// One node.
        node: RootedEntry,
        /// A network.
        network: RootedEntry,
    }
    /// One kind of hop between two ranks.
    HopEntry => Hop {
        /// Share of a launch that back-to-back calls over such hops do not hide.
        launch: Scalar,
        /// µs for a message to be noticed on the other side, in a ring step.
        alpha: Triple,
        /// µs that each channel adds, because one CPU thread serves them in turn.
        serial: Triple,
        /// A tree hop's latency relative to a ring step's: a tree rank sends or receives, not both.
        tree: Triple,
        /// Share of what other channels send that a tree's hop waits for while the trees fill.
        overlap: Scalar,
        /// Share of one channel's buffers that a broadcast's root finds empty: what fits costs it no time.
        absorbed: Scalar,
        /// Share of a chain's hold-up that shows while its buffers fill.
        held_up: Scalar,
        /// GB/s that one rank's CPU can move, sent and received together, whatever the link's rate.
        ceiling: Scalar,
        /// Bandwidth that flows lose by sharing paths, for one channel; it falls with their number.
        collision: Scalar,
        /// µs for each flow into a NIC beyond what its queues take.
        incast: Scalar,
        /// µs more once a message leaves the eager protocol.
        rendezvous: Scalar,
        /// Wire bytes per message up to which it is eager.
        eager: Scalar,
    }
    /// The kinds of links.
    HopsEntry => Hops {
        /// NVLink.
        nvlink: HopEntry,
        /// PCIe peer to peer.
        pcie: HopEntry,
        /// Host memory.
        shm: HopEntry,
        /// InfiniBand.
        infiniband: HopEntry,
        /// RDMA over Ethernet.
        roce: HopEntry,
        /// AWS EFA.
        efa: HopEntry,
        /// HPE Slingshot.
        slingshot: HopEntry,
        /// GPUDirect-TCPX.
        tcpx: HopEntry,
        /// Kernel TCP between hosts.
        tcp: HopEntry,
        /// Kernel TCP through one host's loopback.
        tcp_loopback: HopEntry,
        /// Kernel TCP through one host's virtual Ethernet.
        tcp_veth: HopEntry,
    }
    /// One generation of GPUs.
    ArchEntry => Arch {
        /// Payload GB/s that one channel moves with 512 threads.
        channel_rate: Triple,
        /// Share of the link bandwidth that NVLS turns into algorithm bandwidth of an allreduce.
        nvls: Scalar,
        /// NVLS channels that NCCL launches on one node: measured to fill the switch.
        nvls_channels: Scalar,
        /// MB of L2 that channel buffers share.
        cache: Scalar,
    }
    /// How far real bandwidths are from a cluster file's.
    BandwidthEntry => Bandwidth {
        /// Factor inside a node.
        intra: Scalar,
        /// Factor between nodes.
        inter: Scalar,
    }
    /// Residuals of the fitted model: how large, how smooth, how often jumping.
    ResidualEntry => Residual {
        /// Standard deviation of the log of measured over modelled time.
        spread: Scalar,
        /// Share of its variance that each collective has to itself.
        own: Scalar,
        /// Octaves of size over which residuals stay alike.
        size_octaves: Scalar,
        /// Octaves of channels over which residuals stay alike.
        channel_octaves: Scalar,
        /// Standard deviation of the log step at a cliff.
        cliff: Scalar,
        /// Chance that a pair has a cliff.
        cliff_rate: Scalar,
        /// Chance that a setting has two modes.
        bimodal_rate: Scalar,
        /// How much slower the slow mode is.
        bimodal_slow: Scalar,
    }
    /// Residuals by what the communicator crosses.
    ResidualsEntry => Residuals {
        /// One node.
        node: ResidualEntry,
        /// A network with RDMA.
        rdma: ResidualEntry,
        /// Kernel sockets.
        socket: ResidualEntry,
    }
    /// What changes from call to call.
    WeatherEntry => Weather {
        /// Standard deviation of the log of a call's jitter.
        jitter: Scalar,
        /// Chance that a call is hit by a pause.
        pause_rate: Scalar,
        /// Shortest pause, µs.
        pause: Scalar,
        /// Shape of the pauses' Pareto tail.
        pause_shape: Scalar,
        /// Mean share of the network that others take while they are active.
        load: Scalar,
        /// Mean seconds that others stay active or away.
        load_dwell: Scalar,
        /// Stragglers per hour.
        straggler_rate: Scalar,
        /// Speed of a straggler.
        straggler_speed: Scalar,
        /// Mean seconds that one lasts.
        straggler_dwell: Scalar,
        /// NIC faults per hour.
        fault_rate: Scalar,
        /// Seconds that a fault stalls the call it hits.
        fault_stall: Scalar,
        /// Mean seconds until the NIC is back.
        fault_dwell: Scalar,
        /// Standard deviation of the log of latency and bandwidth after an hour of drift.
        drift: Scalar,
    }
    /// Weather by what the communicator crosses.
    WeathersEntry => Weathers {
        /// One node.
        node: WeatherEntry,
        /// A network with RDMA.
        rdma: WeatherEntry,
        /// Kernel sockets.
        socket: WeatherEntry,
    }
    /// The generations of GPUs, by compute capability.
    ArchsEntry => Archs {
        /// Volta and Turing.
        sm70: ArchEntry,
        /// A100.
        sm80: ArchEntry,
        /// GA10x and Ada, without NVSwitch.
        sm86: ArchEntry,
        /// Hopper.
        sm90: ArchEntry,
        /// Blackwell.
        sm100: ArchEntry,
    }
}

impl Constants {
    /// The same constants by this clock. What a root's buffers take costs rank 0 no time, by whose clock sweeps were published;
    /// it is not done, though.
    pub fn by(mut self, clock: Clock) -> Self {
        if clock.is_drained() {
            self.hop.all().into_iter().for_each(|hop| hop.absorbed = 0.0);
        }
        self
    }
}

impl Hops {
    /// The hop inside a node.
    pub fn intra(&self, link: IntraLink) -> &Hop {
        match link {
            IntraLink::Nvlink | IntraLink::None => &self.nvlink,
            IntraLink::Pcie => &self.pcie,
            IntraLink::Shm => &self.shm,
        }
    }

    /// The hop between nodes.
    pub fn inter(&self, link: InterLink) -> &Hop {
        match link {
            InterLink::Infiniband => &self.infiniband,
            InterLink::Roce => &self.roce,
            InterLink::Efa => &self.efa,
            InterLink::Slingshot => &self.slingshot,
            InterLink::Tcpx => &self.tcpx,
            InterLink::Tcp => &self.tcp,
            InterLink::TcpLoopback => &self.tcp_loopback,
            InterLink::TcpVeth => &self.tcp_veth,
        }
    }

    fn all(&mut self) -> [&mut Hop; 11] {
        let Hops { nvlink, pcie, shm, infiniband, roce, efa, slingshot, tcpx, tcp, tcp_loopback, tcp_veth } =
            self;
        [nvlink, pcie, shm, infiniband, roce, efa, slingshot, tcpx, tcp, tcp_loopback, tcp_veth]
    }
}

impl Archs {
    /// The generation of a compute capability.
    pub fn of(&self, sm: u32) -> &Arch {
        match sm {
            0..=79 => &self.sm70,
            80..=85 => &self.sm80,
            86..=89 => &self.sm86,
            90..=99 => &self.sm90,
            _ => &self.sm100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_by_the_roots_clock_do_buffers_take_what_is_not_done() {
        let fitted = ConstantsFile::full().nominal();
        let absorbed = |clock: Clock| {
            let hops = fitted.by(clock).hop;
            [InterLink::Tcp, InterLink::TcpLoopback, InterLink::TcpVeth].map(|link| hops.inter(link).absorbed)
        };
        assert_eq!(fitted.by(Clock::First), fitted);
        assert!(absorbed(Clock::First)[1..].iter().all(|&share| share > 0.0));
        assert_eq!(absorbed(Clock::Slowest), [0.0; 3]);
    }
}
