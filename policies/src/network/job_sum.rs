//! What a job adds to the embedding of every call on one of its communicators.

use dynamiccl_spec::features::JOB_WIDTH;

use super::net::Network;

/// The job's part of an embedding's sums, and the role whose expert its calls ask.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSum {
    pub(super) sums: Vec<f32>,
    pub(super) role: usize,
}

impl Network {
    /// Room for the sums of a job; of one about which nothing is known.
    pub fn job_sum(&self) -> JobSum {
        let mut sum = JobSum { sums: vec![0.0; self.embed.width()], role: 0 };
        self.embed.begin(&mut sum.sums);
        sum
    }

    /// Works out what the job's part of a context adds, and whose expert it names: the first, of unknown
    /// roles, where it names none.
    pub fn sum_job(&self, job: &[f32; JOB_WIDTH], into: &mut JobSum) {
        into.role = job[self.slots.role.clone()].iter().position(|&x| x == 1.0).unwrap_or(0);
        self.embed.begin(&mut into.sums);
        self.embed.add_sparse(0, job, &mut into.sums);
    }
}
