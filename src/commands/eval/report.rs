//! The result of `eval`, as it is printed.

use dynamiccl_env::evaluate::Report;
use dynamiccl_env::evaluate::tiers::SameCalls;
use dynamiccl_env::nccl::Version;
use serde::Serialize;

/// The document of `eval`.
#[derive(Debug, Serialize)]
pub struct Document {
    /// What was found.
    #[serde(flatten)]
    pub report: Report,
    /// The hash of the policy that comes first; none where no policy does.
    pub policy: Option<String>,
    /// Constants of the model.
    pub constants: String,
    /// Features that tuners were not shown.
    pub hidden: Vec<String>,
    /// Release of NCCL, of cells; jobs and recordings have their own.
    pub nccl_version: Option<Version>,
    /// Whether tuners were told what the machine of a recorded sweep is.
    pub told: bool,
    /// Whether policies took notes of what calls took.
    pub notes: bool,
    /// What the first tuner makes of the same call at each tier; none where it was not judged on the machines
    /// that this takes.
    pub same_call: Option<SameCalls>,
    /// The answer to `--fail-below`; none where it was not asked.
    pub verdict: Option<Verdict>,
}

/// Whether the first tuner is fast enough.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The tuner.
    pub tuner: String,
    /// Its speed-up over all tiers.
    pub speedup: f64,
    /// The least that was asked for.
    pub least: f64,
    /// Whether it is not below.
    pub passed: bool,
}

impl Verdict {
    /// Judges the first tuner; none where it made no judged call.
    pub fn new(report: &Report, least: f64) -> Option<Self> {
        let first = report.tuners.first()?;
        let speedup = first.verdict()?.speedup;
        Some(Verdict { tuner: first.name.clone(), speedup, least, passed: speedup >= least })
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Verdict { tuner, speedup, least, passed } = self;
        let (is, answer) = if *passed { ("is not below", "yes") } else { ("is below", "no") };
        write!(f, "{tuner} {speedup:.3} {is} {least}: {answer}")
    }
}
