//! What runs beside a call: other tenants of the GPU, siblings on the NICs, compute, another library.
//!
//! Each changes the fabric once for all calls of a communicator in one role; what changes from call to
//! call is weather. Nothing here knows which knobs a call has.

use dynamiccl_spec::context::PRIORITY_MAX;
use dynamiccl_spec::{CclLibrary, GpuSharing, Protocol};

use crate::model::constants::{Around, Compute, Library, Priority};
use crate::model::fabric::Fabric;

/// Most SMs that channels are thought to take from compute.
const MOST_TAKEN: f64 = 0.9;

/// What runs beside the calls of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Surroundings {
    /// Who else uses the GPU.
    pub sharing: GpuSharing,
    /// The library that carries the calls.
    pub library: CclLibrary,
    /// Communicators of a node that use its NICs at the same time, this one included.
    pub siblings: u32,
    /// Class of the coflow, 0 (goes last) to 7 (goes first); like everybody else where not given.
    pub priority: Option<u8>,
    /// Whether compute kernels run at the same time.
    pub beside_compute: bool,
}

impl Surroundings {
    /// NCCL on a GPU of its own, with nothing beside it.
    pub const ALONE: Surroundings = Surroundings {
        sharing: GpuSharing::Dedicated,
        library: CclLibrary::Nccl,
        siblings: 1,
        priority: None,
        beside_compute: false,
    };
}

impl Fabric {
    /// The same fabric with this beside it.
    pub fn amid(&self, surroundings: &Surroundings, constants: &Around) -> Fabric {
        let mut fabric = *self;
        fabric.share_gpu(surroundings.sharing, constants);
        fabric.share_nics(f64::from(surroundings.siblings.max(1)), constants.siblings.host);
        fabric.load_weight = surroundings.priority.map_or(1.0, |class| constants.priority.weight(class));
        if surroundings.beside_compute {
            for (rate, left) in fabric.arch.channel_rate.iter_mut().zip(constants.compute.rate) {
                *rate *= left.min(1.0);
            }
            fabric.arch.nvls_channels /= constants.compute.rate[Protocol::Simple.id()].min(1.0);
        }
        if let Some(library) = constants.library.of(surroundings.library) {
            fabric.run_by(library);
        }
        fabric
    }

    fn share_gpu(&mut self, sharing: GpuSharing, constants: &Around) {
        let sharing_constants = &constants.sharing;
        match sharing {
            GpuSharing::Unknown | GpuSharing::Dedicated => {}
            GpuSharing::Mps => {
                self.slow_channels(sharing_constants.mps_rate);
                self.start_with(sharing_constants.mps_launch, 1.0);
            }
            GpuSharing::Mig => {
                self.slow_channels(sharing_constants.mig_share);
                self.arch.cache *= sharing_constants.mig_share;
            }
            GpuSharing::TimeSlice => {
                self.slow_channels(sharing_constants.slice_share);
                self.wait_before(sharing_constants.slice_wait);
            }
        }
    }

    /// Channels move less, so it takes more of them to fill a switch.
    fn slow_channels(&mut self, share: f64) {
        self.arch.channel_rate = self.arch.channel_rate.map(|rate| rate * share.min(1.0));
        self.arch.nvls_channels /= share.min(1.0);
    }

    /// Every launch and every hop waits for its GPU's turn.
    fn wait_before(&mut self, micros: f64) {
        self.wait += micros;
        self.call.launch = self.call.launch.map(|us| us + micros);
        self.nvls.start += micros;
        self.rooted.broadcast = self.rooted.broadcast.map(|us| us + micros);
        self.rooted.reduce = self.rooted.reduce.map(|us| us + micros);
    }

    /// Divides the NICs among communicators: those that use other NICs take nothing from each other.
    fn share_nics(&mut self, siblings: f64, host: f64) {
        let left = (1.0 / (siblings * self.nic_share)).min(1.0);
        self.inter_bandwidth *= left;
        self.shaped_bandwidth *= left;
        self.host_bandwidth /= 1.0 + host * (siblings - 1.0);
        self.lanes = self.lanes.min(self.nics / siblings).max(1.0);
    }

    fn run_by(&mut self, library: &Library) {
        self.start_with(library.latency, 1.0);
        self.intra = self.intra.slowed(library.latency);
        self.inter = self.inter.slowed(library.latency);
        self.intra_bandwidth *= library.node;
        let bound = if self.crosses() { library.network } else { library.node };
        self.arch.channel_rate = self.arch.channel_rate.map(|rate| rate * bound);
        self.inter_bandwidth *= library.network;
        self.shaped_bandwidth *= library.network.min(1.0);
        self.host_bandwidth *= library.network;
        self.ll_bandwidth *= library.network;
    }
}

impl Priority {
    /// What a class sees of others' load, relative to its share.
    pub fn weight(&self, class: u8) -> f64 {
        let part = f64::from(class.min(PRIORITY_MAX)) / f64::from(PRIORITY_MAX);
        self.last.max(1.0) * (1.0 - part) + self.first.min(1.0) * part
    }
}

impl crate::model::constants::Libraries {
    /// The library's factors; nothing for NCCL.
    fn of(&self, library: CclLibrary) -> Option<&Library> {
        match library {
            CclLibrary::Unknown | CclLibrary::Nccl => None,
            CclLibrary::Mpi => Some(&self.mpi),
            CclLibrary::Gloo => Some(&self.gloo),
            CclLibrary::Msccl => Some(&self.msccl),
            CclLibrary::Sccl => Some(&self.sccl),
            CclLibrary::Taccl => Some(&self.taccl),
            CclLibrary::Other => Some(&self.other),
        }
    }
}

/// How much longer compute takes beside a collective with this many channels. Each takes an SM, and work
/// that filled whole waves of SMs then needs one more.
pub fn compute_stretch(constants: &Compute, channels: u32, sms: u32) -> f64 {
    let taken = (f64::from(channels) / f64::from(sms.max(1))).min(MOST_TAKEN);
    let tail = if channels == 0 { 0.0 } else { taken / (taken + constants.tail_half) };
    1.0 / (1.0 - taken) + constants.tail * tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ConstantsFile;

    #[test]
    fn compute_is_stretched_from_nothing_to_what_was_measured() {
        let compute = ConstantsFile::full().nominal().around.compute;
        let stretch = |channels| compute_stretch(&compute, channels, 132);
        assert_eq!(stretch(0), 1.0);
        // 24 CTAs beside a GEMM of 132 blocks.
        assert!((stretch(24) - 1.7).abs() < 0.02, "{}", stretch(24));
        let all: Vec<f64> = (0..=256).map(stretch).collect();
        assert!(all.is_sorted() && all[256].is_finite(), "{all:?}");
        assert!(all.windows(2).take(64).all(|two| two[1] > two[0]));
    }

    #[test]
    fn the_first_class_sees_least_and_the_last_most_of_a_load() {
        let priority = ConstantsFile::full().nominal().around.priority;
        let weights: Vec<f64> = (0..=PRIORITY_MAX).map(|class| priority.weight(class)).collect();
        assert!(weights.windows(2).all(|two| two[1] < two[0]), "{weights:?}");
        assert!(weights[0] > 1.0 && weights[7] < 0.2, "{weights:?}");
        assert_eq!(priority.weight(200), weights[7]);
    }
}
