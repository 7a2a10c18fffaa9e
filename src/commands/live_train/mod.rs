//! `live train`: a policy fitted to recorded sweeps, and a file that says to which.

mod policy;
mod report;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dynamiccl_agent::fit::{self, Fit, Setup};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::swept::Swept;
use dynamiccl_policies::frozen::{Frozen, SHIPPED};

use super::policy_file::shipped;
use super::train::settings;
use crate::args::LiveTrainArgs;
use crate::atomic::OutFile;
use crate::exit::Ending;
use crate::session::Session;
use report::Report;

/// Makes the plan and carries it out.
pub fn run(args: &LiveTrainArgs, session: &Session) -> Result<Ending> {
    let source = match args.policy.as_str() {
        SHIPPED => shipped()?,
        file => Frozen::open(file.as_ref())?,
    };
    let setup = setup(args, &source, session.seed)?;
    let others = sweeps("--judge", &args.judge, args)?;
    let mut out = OutFile::create(&args.out)?;
    let begun = Instant::now();
    let fit = train(setup, args, session)?;
    let frozen = policy::fitted(&source, &fit, args, session.seed);
    let bytes = frozen.to_bytes();
    Frozen::read(&bytes).context("what would be written cannot be read")?;
    out.write_all(&bytes).with_context(|| format!("cannot write {}", args.out.display()))?;
    out.commit()?;
    let report = Report::new(args, [&source, &frozen], &fit, &others, begun.elapsed().as_secs_f64())?;
    session.report("live train", &report)?;
    Ok(if report.passed == Some(false) { Ending::No } else { Ending::Done })
}

fn setup(args: &LiveTrainArgs, source: &Frozen, seed: u64) -> Result<Setup> {
    let config = settings::with(fit::usual(), &args.set)?;
    config.check()?;
    let curriculum = Curriculum::load(&args.curriculum)?;
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get());
    Ok(Setup {
        policy: source.weights.clone(),
        margin: source.about.margin,
        sweeps: sweeps("--sweep", &args.sweep, args)?,
        doubts: args.doubt,
        stage: Arc::clone(curriculum.stages.last().context("a curriculum without a stage")?),
        simulated: args.simulated,
        config,
        steps: args.steps,
        enough: args.enough,
        seed,
        threads: args.threads.map_or_else(cores, usize::from),
        constants: Arc::new(ConstantsFile::full()),
    })
}

fn sweeps(flag: &str, paths: &[PathBuf], args: &LiveTrainArgs) -> Result<Vec<Arc<Swept>>> {
    let cluster = args.cluster.as_deref().map(Cluster::load).transpose()?;
    let mut sweeps: Vec<Arc<Swept>> = Vec::new();
    for path in paths {
        sweeps.extend(
            Swept::read(path, cluster.as_ref()).with_context(|| format!("{flag} {}", path.display()))?,
        );
    }
    Ok(sweeps)
}

/// Fits until it is good enough, or steps or seconds have run out.
fn train(setup: Setup, args: &LiveTrainArgs, session: &Session) -> Result<Fit> {
    let begun = Instant::now();
    let mut fit = Fit::new(setup)?;
    let progress = session.progress("live train", args.steps);
    while !fit.done() && begun.elapsed() < Duration::from_secs(args.seconds) {
        let before = fit.steps();
        fit.update()?;
        progress.remark(&format!("{:.1} % of the headroom", 100.0 * fit.best().headroom()));
        progress.advance(fit.steps() - before)?;
    }
    fit.judge()?;
    Ok(fit)
}
