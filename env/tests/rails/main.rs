//! Photonic rails beside the figures of the paper, and what must hold for any job.

mod environment;
mod figures;
mod properties;

use dynamiccl_env::rails::{Controller, Fabric, Iterations, Jitter, Job, Timing, judge, paper_recipe};

/// The paper's job with other degrees.
fn paper(pp: u32, fsdp: u32, micro_batches: u32) -> Job {
    Job::new(paper_recipe(pp, fsdp, micro_batches), Timing::default(), Fabric::default()).unwrap()
}

/// % that iterations take longer than the baseline under a controller.
fn increase(job: &Job, jitter: &Jitter, controller: &mut dyn Controller) -> f64 {
    let iterations = [Iterations::draw(job, 2, jitter, 7)];
    judge(job, &iterations, &mut [controller], || Ok::<_, ()>(())).unwrap().1[0].increase
}
