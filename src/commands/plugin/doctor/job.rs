//! Which job a rank belongs to, by the names that launchers give their jobs: two jobs may be told the same place to meet.
//!
//! One launcher may start another, whose ranks inherit the variables of the first, and a daemon's step is not the ranks'. So
//! a rank goes only by what its own launcher gives alike to all ranks of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What batch systems give to all processes of an allocation; which of them see it is up to who starts them.
const ALLOCATIONS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// The names of a job, by the variables that say them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Job(BTreeMap<String, String>);

impl Job {
    /// The job of a rank of this launcher.
    pub fn find(launcher: Option<&str>, get: impl Fn(&str) -> Option<String>) -> Self {
        let own: &[&str] = match launcher {
            Some("torchrun") => &["TORCHELASTIC_RUN_ID"],
            Some("mpirun") => &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
            Some("srun") => &["SLURM_STEP_ID"],
            Some("mpiexec") => &["PALS_APID", "PMIX_NAMESPACE"],
            _ => &[],
        };
        // The parts of a heterogeneous job have numbers of their own.
        let in_parts = get("SLURM_HET_SIZE").is_some();
        let names = own.iter().chain(&ALLOCATIONS).filter(|name| !(in_parts && name.starts_with("SLURM_")));
        let said = names.filter_map(|name| {
            let value = get(name)?.trim().to_owned();
            (!value.is_empty()).then(|| ((*name).to_owned(), value))
        });
        Job(said.collect())
    }

    /// What tells another job from this one, in words; nothing where it may be the same. A name that only one of them has
    /// tells nothing.
    pub fn differs(&self, other: &Job) -> Option<String> {
        let mut both = self.0.iter().filter_map(|(name, ours)| Some((name, ours, other.0.get(name)?)));
        let (name, ours, theirs) = both.find(|(_, ours, theirs)| ours != theirs)?;
        Some(format!("{name}={theirs}, which is {ours} on rank 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(launcher: &str, set: &[(&str, &str)]) -> Job {
        let get = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Job::find(Some(launcher), get)
    }

    #[test]
    fn jobs_are_told_apart_by_what_their_launcher_says() {
        for (launcher, name) in [
            ("torchrun", "TORCHELASTIC_RUN_ID"),
            ("mpirun", "PMIX_NAMESPACE"),
            ("srun", "SLURM_STEP_ID"),
            ("srun", "SLURM_JOB_ID"),
            ("mpiexec", "PALS_APID"),
            ("nobody", "PBS_JOBID"),
        ] {
            let [ours, theirs] = ["1", "2"].map(|id| job(launcher, &[(name, id)]));
            assert_eq!(ours.differs(&theirs), Some(format!("{name}=2, which is 1 on rank 0")));
            assert_eq!([ours.differs(&ours), ours.differs(&Job::default())], [None, None]);
        }
    }

    #[test]
    fn parts_of_a_heterogeneous_job_are_one_job() {
        let part = |id| job("srun", &[("SLURM_HET_SIZE", "2"), ("SLURM_JOB_ID", id), ("SLURM_STEP_ID", "0")]);
        assert_eq!(part("41").differs(&part("42")), None);
    }

    /// `mpirun` begins on the first node, and has its daemons on the others begun by `srun`.
    #[test]
    fn the_step_of_a_daemon_is_not_that_of_the_ranks() {
        let of =
            |step| job("mpirun", &[("PMIX_NAMESPACE", "7"), ("SLURM_JOB_ID", "42"), ("SLURM_STEP_ID", step)]);
        assert_eq!(of("batch").differs(&of("0")), None);
        let torchrun = |step| job("torchrun", &[("SLURM_JOB_ID", "42"), ("SLURM_STEP_ID", step)]);
        assert_eq!(torchrun("0").differs(&torchrun("1")), None);
    }
}
