//! Words that several commands share, and how values are read.

use std::path::PathBuf;

use dynamiccl_env::model::ConstantsFile;
use dynamiccl_spec::{Collective, Runtime};

/// The machine: one of the two.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct MachineArgs {
    /// Cluster by name, or a file ending in .toml
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,
    /// Nodes like the one that NCCL dumped with NCCL_TOPO_DUMP_FILE
    #[arg(long, value_name = "FILE")]
    pub topo: Option<PathBuf>,
}

/// What NCCL's search found, where a dump says it better than the cluster.
#[derive(Debug, clap::Args)]
pub struct GraphsArgs {
    /// Graphs that NCCL dumped with NCCL_GRAPH_DUMP_FILE on this many nodes, instead of the cluster's
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
}

/// Constants of the performance model.
#[derive(Debug, clap::Args)]
pub struct ConstantsArgs {
    /// Constants of the model: "full", "blind" (those that never saw the live sweeps) or a file
    #[arg(long, value_name = "FILE|blind", default_value = ConstantsFile::USUAL)]
    pub constants: String,
}

/// What runs schedules beside NCCL.
#[derive(Debug, clap::Args)]
pub struct RuntimeArgs {
    /// What runs synthesised schedules beside NCCL: stock (nothing), or msccl where a schedule exists (64 ranks at
    /// most) [default: stock; jobs of a curriculum as it says]
    #[arg(long, value_name = "NAME")]
    pub runtime: Option<Runtime>,
}

impl RuntimeArgs {
    /// Whether there is one that runs schedules.
    pub fn runs_schedules(&self) -> bool {
        self.runtime == Some(Runtime::Msccl)
    }
}

/// A collective that reaches a tuner; the others have nothing to choose.
pub(super) fn tuned_collective(s: &str) -> Result<Collective, String> {
    let tuned = || Collective::TUNED.map(Collective::name).join(", ");
    match s.parse::<Collective>() {
        Ok(collective) if Collective::TUNED.contains(&collective) => Ok(collective),
        Ok(other) => {
            Err(format!("NCCL does not tune {other}, it has no setting to choose (tuned: {})", tuned()))
        }
        Err(unknown) => Err(unknown.to_string()),
    }
}

/// A variable and its value.
pub(super) fn assignment(s: &str) -> Result<(String, String), String> {
    match s.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write it like NCCL_ALGO=Ring".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tuned_collectives_are_taken() {
        assert_eq!(tuned_collective("AllReduce"), Ok(Collective::AllReduce));
        let refused = tuned_collective("alltoall").unwrap_err();
        assert!(refused.starts_with("NCCL does not tune alltoall"), "{refused}");
        assert!(tuned_collective("allredcue").unwrap_err().contains("did you mean \"allreduce\""));
    }

    #[test]
    fn a_variable_has_a_name_and_a_value() {
        assert_eq!(assignment("NCCL_ALGO=Ring"), Ok(("NCCL_ALGO".to_owned(), "Ring".to_owned())));
        for bad in ["NCCL_ALGO", "=Ring", "NCCL_ALGO="] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }
}
