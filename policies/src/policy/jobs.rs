//! What jobs look like to a network, worked out once for each.
//!
//! The context of a job changes rarely and then often back again (the role of its next call), so a few
//! are kept. Each has a stamp of its own, so that others can tell by one number whether it is the same.

use dynamiccl_spec::JobContext;
use dynamiccl_spec::features::Encoder;

use crate::network::{JobSum, Network};

/// How many are kept.
const KEPT: usize = 8;

/// The contexts of jobs that were seen last.
#[derive(Debug, Clone)]
pub(super) struct Jobs {
    kept: Vec<Job>,
    last: usize,
    stamps: u64,
}

#[derive(Debug, Clone)]
struct Job {
    encoder: Encoder,
    sum: JobSum,
    stamp: u64,
}

impl Jobs {
    pub fn new(network: &Network) -> Self {
        let encoder = Encoder::new(&JobContext::default());
        let mut sum = network.job_sum();
        network.sum_job(encoder.job(), &mut sum);
        Jobs { kept: vec![Job { encoder, sum, stamp: 0 }; KEPT], last: 0, stamps: 0 }
    }

    /// What an encoder's job adds to the sums of its calls, and the stamp that only this encoder has.
    #[inline]
    pub fn of(&mut self, network: &Network, encoder: &Encoder) -> (&JobSum, u64) {
        if !self.kept[self.last].encoder.same(encoder) {
            self.last = self.find(encoder).unwrap_or_else(|| self.replace(network, encoder));
        }
        let job = &self.kept[self.last];
        (&job.sum, job.stamp)
    }

    fn find(&self, encoder: &Encoder) -> Option<usize> {
        self.kept.iter().position(|job| job.encoder.same(encoder))
    }

    /// Puts a job in the place of the one that came first.
    #[cold]
    fn replace(&mut self, network: &Network, encoder: &Encoder) -> usize {
        self.stamps += 1;
        let at = (self.stamps % KEPT as u64) as usize;
        let job = &mut self.kept[at];
        job.encoder.clone_from(encoder);
        job.stamp = self.stamps;
        network.sum_job(encoder.job(), &mut job.sum);
        at
    }
}
