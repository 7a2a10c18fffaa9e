//! The launch-time recommendation: threads are one number for a whole process, and no tuner can set them per
//! call, so of those that the policy asks for here the one that serves all calls best is printed to be pasted.

use dynamiccl_spec::knobs::ThreadChoice;
use serde::Serialize;

/// What to set before a job starts.
#[derive(Debug, Serialize)]
pub struct Recommendation {
    /// Threads of a block; none: NCCL's own.
    pub threads: Option<u32>,
    /// Simulated time with NCCL's own threads ÷ with these, geometric mean over the calls.
    pub speedup: f64,
}

impl Recommendation {
    /// The best of the thread counts that were asked for, by the log of the time that all calls take with it,
    /// summed up; NCCL's own where none is better.
    pub fn new(asked: &[ThreadChoice], calls: usize, log_time: impl Fn(ThreadChoice) -> Option<f64>) -> Self {
        let own = log_time(ThreadChoice::OWN).unwrap_or_default();
        let mut best = (None, own);
        for threads in asked.iter().copied().filter(|threads| threads.requested().is_some()) {
            if let Some(time) = log_time(threads).filter(|time| *time < best.1) {
                best = (threads.requested(), time);
            }
        }
        Recommendation { threads: best.0, speedup: ((own - best.1) / calls.max(1) as f64).exp() }
    }

    /// The lines to paste.
    pub fn text(&self) -> String {
        match self.threads {
            None => "at launch: leave threads to NCCL".to_owned(),
            Some(threads) => format!(
                "at launch: DYNAMICCL_NTHREADS={threads}, or in the deployment file [launch] threads = {threads} \
                 (simulated: {:.2}x against NCCL's own)",
                self.speedup
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recommended(own: f64, with: f64) -> Recommendation {
        let asked = [ThreadChoice::OWN, ThreadChoice::of(256).unwrap()];
        Recommendation::new(&asked, 2, |threads| Some(if threads == ThreadChoice::OWN { own } else { with }))
    }

    #[test]
    fn what_is_no_better_is_not_recommended() {
        assert_eq!(recommended(2.0, 2.0).threads, None);
        assert_eq!(recommended(2.0, 3.0).text(), "at launch: leave threads to NCCL");
        let better = recommended(2.0, 1.0);
        assert_eq!(better.threads, Some(256));
        assert!((better.speedup - 0.5_f64.exp()).abs() < 1e-12);
        assert!(better.text().contains("DYNAMICCL_NTHREADS=256") && better.text().contains("threads = 256"));
    }
}
