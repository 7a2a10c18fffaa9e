//! After the last step: the best policy is written, judged, and written again with what it reached.

use anyhow::{Error, Result};
use dynamiccl_agent::run::{EVAL, POLICY, policy};

use super::Job;
use super::lesson::{Ended, Lesson};
use super::report::Closing;
use crate::args::TrainArgs;
use crate::session::{Session, USUAL_SEED};

/// Ends a run.
pub fn finish<L: Lesson>(job: &mut Job<L>, args: &TrainArgs, session: &Session) -> Result<()> {
    let steps = job.training.steps();
    let sps = job.recorder.rate(steps);
    let interrupt = session.interrupt();
    let (weights, steps_of_best) = job.training.outcome(|| interrupt.check().map_err(Error::from))?;
    let path = job.run.path(POLICY);
    let about = |results| policy::about(job.run.settings(), job.training.subject(), steps_of_best, results);
    policy::write(&path, weights.clone(), about(Vec::new()))?;
    let Ended { document, command, results } = L::conclude(job, &weights, args, session)?;
    policy::write(&path, weights, about(results))?;
    let text = session.output.document(command, USUAL_SEED, &document)?;
    job.run.write(EVAL, text.as_bytes())?;
    session.output.report("train", job.run.settings().seed, &Closing::new(job, steps, sps, document))
}
