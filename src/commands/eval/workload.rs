//! What tuners are judged on: cells of machines, jobs of a curriculum, a recorded job, or recorded sweeps.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::curriculum::{Curriculum, Stage};
use dynamiccl_env::evaluate::{Machine, NODES};
use dynamiccl_env::job::Job;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::Swept;
use dynamiccl_env::trace::Trace;

use super::joined;
use crate::args::{CELLS, EvalArgs};

/// Tiers that are judged at where nobody names any.
const TIERS: [u8; 4] = [1, 2, 3, 4];

/// The stage that says how a recorded job is run.
const AROUND_TRACES: &str = "smoke";

/// What tuners are judged on.
pub enum Workload {
    /// Every collective in every size on these.
    Cells(Vec<Machine>),
    /// Jobs of these stages.
    Drawn(Vec<Arc<Stage>>),
    /// This job, in a stage's weather, and what is wrong with its recording.
    Recorded(Box<Job>, Arc<Stage>, Vec<String>),
    /// Every call of these, by the times that were measured, and what must be known about them.
    Swept(Vec<Arc<Swept>>, Vec<String>),
}

impl Workload {
    /// Finds what the words name.
    pub fn new(args: &EvalArgs) -> Result<Self> {
        if args.workload == CELLS {
            return cells(args);
        }
        ensure!(
            args.nodes.is_empty(),
            "--nodes goes with --workload cells: jobs bring the machines that they run on"
        );
        if is_sweep(Path::new(&args.workload)) {
            return swept(args);
        }
        if is_recording(&args.workload) { replayed(args) } else { drawn(args) }
    }

    /// What a user must know about it.
    pub fn warnings(&self) -> &[String] {
        match self {
            Workload::Recorded(_, _, warnings) | Workload::Swept(_, warnings) => warnings,
            Workload::Cells(_) | Workload::Drawn(_) => &[],
        }
    }

    /// An environment with such jobs; none for cells and sweeps.
    pub fn env(&self, constants: &Arc<ConstantsFile>) -> Option<SimEnv> {
        match self {
            Workload::Cells(_) | Workload::Swept(..) => None,
            Workload::Drawn(stages) => Some(SimEnv::mixed(stages.iter().cloned(), Arc::clone(constants))),
            Workload::Recorded(job, stage, _) => {
                Some(SimEnv::of_job((**job).clone(), stage, Arc::clone(constants)))
            }
        }
    }
}

/// Whether a word is meant to be the file of a recorded job, or the folder of what its ranks recorded: curricula are
/// words, or files ending in `.toml`.
fn is_recording(word: &str) -> bool {
    let path = Path::new(word);
    let names_file = path.exists() || path.extension().is_some() || path.components().count() > 1;
    names_file && path.extension().is_none_or(|extension| extension != "toml")
}

/// Whether a path is that of a sweep, or of a folder with one in it.
fn is_sweep(path: &Path) -> bool {
    let is_csv =
        |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let mut entries = path.read_dir().into_iter().flatten().flatten();
    is_csv(path) || entries.any(|entry| is_csv(&entry.path()))
}

/// The tiers that are judged at.
pub fn tiers(args: &EvalArgs) -> &[u8] {
    if args.tiers.is_empty() { &TIERS } else { &args.tiers }
}

fn swept(args: &EvalArgs) -> Result<Workload> {
    ensure!(
        args.tiers.is_empty(),
        "--tiers goes with simulated times: a recorded sweep is of one machine, whose tier it has; leave it out"
    );
    let cluster = one_cluster(args)?.map(Cluster::load).transpose()?;
    let sweeps = Swept::read(Path::new(&args.workload), cluster.as_ref())?;
    let warnings = sweeps.iter().flat_map(|swept| swept.notes()).collect();
    Ok(Workload::Swept(sweeps, warnings))
}

/// The cluster that a recording is of, where it is named.
fn one_cluster(args: &EvalArgs) -> Result<Option<&str>> {
    match args.clusters.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.as_str())),
        _ => bail!("--clusters {}: a recording is of one of them, name it", args.clusters.join(",")),
    }
}

fn cells(args: &EvalArgs) -> Result<Workload> {
    let nodes = if args.nodes.is_empty() { &NODES[..] } else { &args.nodes };
    let machines = Machine::list(&args.clusters, nodes, tiers(args))?;
    if machines.is_empty() {
        bail!(
            "no machine is left: none of these clusters has graphs for --nodes {} at --tiers {}; name others",
            joined(nodes),
            joined(tiers(args))
        );
    }
    let nccl = args.nccl.unwrap_or_default();
    Ok(Workload::Cells(machines.into_iter().map(|machine| machine.with_nccl(nccl)).collect()))
}

fn drawn(args: &EvalArgs) -> Result<Workload> {
    ensure!(
        args.clusters.is_empty(),
        "--clusters goes with --workload cells: a curriculum names its own clusters"
    );
    Ok(Workload::Drawn(Curriculum::load(&args.workload)?.stages))
}

fn replayed(args: &EvalArgs) -> Result<Workload> {
    let cluster = one_cluster(args)?;
    let trace = Trace::read(Path::new(&args.workload))?;
    let mut stage = Stage::clone(&Curriculum::load(AROUND_TRACES)?.stages[0]);
    // A recording ends by itself.
    stage.file.workload.calls = u32::MAX;
    let job = Box::new(Job::replay(&trace, cluster)?);
    let warnings = trace.warnings.iter().map(ToString::to_string).collect();
    Ok(Workload::Recorded(job, Arc::new(stage), warnings))
}
