//! The launchers of parallel jobs, by the variables with which they tell a process which rank it is.
//!
//! One may start another, whose variables the ranks then inherit: torchrun may run under srun, and mpirun within an
//! allocation of Slurm starts its daemons by srun. Whoever asks must ask in the same order, or ranks take a daemon's
//! number for their own. What the numbers are for is not known here.

/// A launcher's name with its variables for the rank, all ranks, the ranks of this node, and the rank among those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launcher {
    /// The program that people start.
    pub name: &'static str,
    /// The rank.
    pub rank: &'static str,
    /// All ranks, by the first that is set.
    pub ranks: &'static [&'static str],
    /// The ranks of this node.
    pub local: &'static str,
    /// The rank among those.
    pub within: &'static str,
}

/// The one whose variables those inherit that another one starts.
const SLURM: Launcher = Launcher {
    name: "srun",
    rank: "SLURM_PROCID",
    ranks: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    local: "SLURM_TASKS_PER_NODE",
    within: "SLURM_LOCALID",
};

/// Those first that others start.
pub const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        name: "torchrun",
        rank: "RANK",
        ranks: &["WORLD_SIZE"],
        local: "LOCAL_WORLD_SIZE",
        within: "LOCAL_RANK",
    },
    Launcher {
        name: "mpirun",
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: &["OMPI_COMM_WORLD_SIZE"],
        local: "OMPI_COMM_WORLD_LOCAL_SIZE",
        within: "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    SLURM,
    Launcher {
        name: "mpiexec",
        rank: "PMI_RANK",
        ranks: &["PMI_SIZE"],
        local: "MPI_LOCALNRANKS",
        within: HYDRA,
    },
];

/// What only processes of Hydra have, which is the `mpiexec` of MPICH and of Intel. Within a job of Slurm it lets `srun` start
/// its proxies, one for each node, and their variables are inherited: each process would be that proxy's rank.
const HYDRA: &str = "MPI_LOCALRANKID";

/// The rank among those of this node by those who say no more than that (PALS), asked after all launchers.
const WITHIN: &str = "PMI_LOCAL_RANK";

/// The launchers to ask, in this order, in an environment with these variables.
pub fn to_ask(is_set: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static Launcher> {
    let hydra = is_set(HYDRA);
    LAUNCHERS.iter().filter(move |launcher| !hydra || launcher.name != SLURM.name)
}

/// What the environment says of the rank on its node.
pub fn within(get: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_set = |name: &str| get(name).is_some();
    to_ask(is_set).map(|launcher| launcher.within).chain([WITHIN]).find_map(&get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(set: &[(&str, &str)]) -> Option<String> {
        within(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn those_that_others_start_are_asked_first() {
        let names: Vec<&str> = to_ask(|_| false).map(|launcher| launcher.name).collect();
        assert_eq!(names, ["torchrun", "mpirun", "srun", "mpiexec"]);
        let names: Vec<&str> = to_ask(|name| name == HYDRA).map(|launcher| launcher.name).collect();
        assert_eq!(names, ["torchrun", "mpirun", "mpiexec"]);
    }

    #[test]
    fn no_rank_takes_a_daemons_number_for_its_own() {
        let daemon = ("SLURM_LOCALID", "0");
        for own in ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"] {
            assert_eq!(found(&[daemon, (own, "3")]).as_deref(), Some("3"), "{own}");
        }
        assert_eq!(found(&[("PMI_LOCAL_RANK", "1"), ("SLURM_LOCALID", "2")]).as_deref(), Some("2"));
        assert_eq!(found(&[("PMI_LOCAL_RANK", "1")]).as_deref(), Some("1"));
        assert_eq!(found(&[]), None);
    }
}
