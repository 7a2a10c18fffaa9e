//! `live train`: a policy fitted to recorded sweeps or to real ranks, and a file that says to which.

mod policy;
mod report;
mod threads;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail, ensure};
use dynamiccl_agent::fit::{self, Fit, FitError, Ground, Setup};
use dynamiccl_agent::run::clock::Utc;
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::gym::EnvError;
use dynamiccl_env::lived::{Limits, Lived, LivedError};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::swept::Swept;
use dynamiccl_live::crew::LiveError;
use dynamiccl_policies::frozen::{Frozen, SHIPPED};

use super::live::job::Job;
use super::live::lived;
use super::policy_file::shipped;
use super::train::settings;
use crate::args::LiveTrainArgs;
use crate::atomic::{Apart, OutFile, ends_in};
use crate::exit::Ending;
use crate::interrupt::Interrupted;
use crate::session::{Session, cores};
use report::Report;
use threads::Fastest;

/// Times that one launch of a call is timed at most: more says nothing new.
const MOST: usize = 25;

/// Settings that a policy brings along, and those of judgements, which have nothing to say here.
const KEPT: [&str; 3] = ["network.", "without.", "evaluation."];

/// Updates without a call after which everything worth calling is known.
const IDLE: u32 = 8;

/// Makes the plan and carries it out.
pub fn run(args: &LiveTrainArgs, session: &Session) -> Result<Ending> {
    apart(args)?;
    ends_in("--out", &args.out, &["safetensors"], "a policy")?;
    let created = Utc::now()?;
    let source = match args.policy.as_str() {
        SHIPPED => shipped()?,
        file => Frozen::open_tuner(file.as_ref())?,
    };
    let plan = plan(args, &source, session.seed)?;
    let others = sweeps("--judge", &args.judge, args)?;
    let Fastest { kept, threads, left_out } = threads::fastest(sweeps("--sweep", &args.sweep, args)?)?;
    if !args.sweep.is_empty() || Job::leads(&args.job)? {
        // Other ranks than the first write nothing.
        OutFile::probe(&args.out)?;
    }
    let ground = match ground(kept, args, session)? {
        Ok(ground) => ground,
        Err(ending) => return Ok(ending),
    };
    let begun = Instant::now();
    let (fit, cut_short) = train(Setup { ground: ground.clone(), ..plan }, args, session)?;
    let frozen = policy::fitted(&source, &fit, args, (&ground, session.seed, created));
    let bytes = frozen.to_bytes();
    Frozen::read(&bytes).context("what would be written cannot be read")?;
    OutFile::create(&args.out)?.finish(&bytes)?;
    let fitted = (&fit, &ground);
    let mut report =
        Report::new(args, [&source, &frozen], fitted, (&others, threads), begun.elapsed().as_secs_f64())?;
    report.leave_out(&left_out);
    session.report("live train", &report)?;
    if let Some(why) = cut_short {
        return Err(why);
    }
    Ok(if report.passed == Some(false) { Ending::No } else { Ending::Done })
}

/// Makes sure that nothing is written over what is read, and that nothing is judged on what it was fitted to.
fn apart(args: &LiveTrainArgs) -> Result<()> {
    Apart::default()
        .reads_once("--sweep", &args.sweep)?
        .reads_once("--judge", &args.judge)?
        .reads("--policy", [&args.policy])
        .reads("--cluster", &args.cluster)
        .reads("--curriculum", [&args.curriculum])
        .writes("--out", [&args.out])?;
    Ok(())
}

/// All but what it is fitted to, which may be costly to begin.
fn plan(args: &LiveTrainArgs, source: &Frozen, seed: u64) -> Result<Setup> {
    let usual = if args.sweep.is_empty() { fit::usual_live() } else { fit::usual() };
    let kept = args.set.iter().find(|set| KEPT.iter().any(|part| set.trim_start().starts_with(part)));
    if let Some(set) = kept {
        bail!("--set {set}: a policy keeps its network, and how it is judged here is fixed; leave it out");
    }
    // Before ranks are started for it.
    ensure!(!source.weights.remembers_a_job(), "--policy {}: {}", args.policy, FitError::Remembers);
    let config = settings::with(usual, &args.set)?;
    config.check()?;
    let update = config.rollout.environments * config.rollout.steps;
    ensure!(
        !args.sweep.is_empty() || args.calls >= update as u64,
        "--calls {}: one update takes up to {update}; give as many, or --set rollout.environments less",
        args.calls
    );
    let curriculum = Curriculum::load(&args.curriculum)?;
    Ok(Setup {
        policy: source.weights.clone(),
        margin: source.about.margin,
        ground: Ground::Sweeps(Vec::new()),
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

/// What it is fitted to; how it ended where this is another rank than the first, whose work is done.
fn ground(
    recorded: Vec<Arc<Swept>>,
    args: &LiveTrainArgs,
    session: &Session,
) -> Result<Result<Ground, Ending>> {
    if !recorded.is_empty() {
        return Ok(Ok(Ground::Sweeps(recorded)));
    }
    let lasts = Some(Duration::from_secs(args.seconds));
    let limits = Limits { slowdown: args.slowdown, most: MOST, doubts: args.doubt, lasts };
    let started = lived::start(&args.job, &args.of_ranks, args.cluster.as_deref(), limits, session);
    const NEEDED: &str = "--sweep names what was recorded; without, real ranks are needed";
    let said =
        |error: &Error| error.is::<Interrupted>() || error.is::<LivedError>() || error.is::<LiveError>();
    let started = started.map_err(|error| if said(&error) { error } else { error.context(NEEDED) });
    Ok(started?.map(Ground::Live))
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

/// Calls and seconds that a fit may take.
struct Budget {
    /// Real ranks, whose time began with their first call.
    lived: Option<Arc<Lived>>,
    begun: Instant,
    seconds: u64,
    calls: u64,
    /// Decisions of one update.
    update: u64,
}

impl Budget {
    fn new(setup: &Setup, args: &LiveTrainArgs) -> Self {
        let lived = if let Ground::Live(lived) = &setup.ground { Some(Arc::clone(lived)) } else { None };
        let update = (setup.config.rollout.environments * setup.config.rollout.steps) as u64;
        Budget { lived, begun: Instant::now(), seconds: args.seconds, calls: args.calls, update }
    }

    /// What counts as progress: calls on real ranks, or steps.
    fn done(&self, fit: &Fit) -> u64 {
        self.lived.as_ref().map_or_else(|| fit.steps(), |lived| lived.called())
    }

    /// Whether no update is to be begun. No more calls are made than was allowed, so one that might make too many is none.
    fn is_spent(&self) -> bool {
        match &self.lived {
            Some(lived) => lived.is_over() || lived.called() + self.update > self.calls,
            None => self.begun.elapsed() >= Duration::from_secs(self.seconds),
        }
    }
}

/// Fits until it is good enough, or steps, calls or seconds have run out; or what has cut it short, which is an error where
/// nothing was learnt before.
fn train(setup: Setup, args: &LiveTrainArgs, session: &Session) -> Result<(Fit, Option<Error>)> {
    let budget = Budget::new(&setup, args);
    let live = budget.lived.is_some();
    let mut fit = Fit::new(setup)?;
    let progress = session.progress("live train", if live { args.calls } else { args.steps });
    let (mut cut_short, mut updates, mut idle) = (None, 0, 0);
    while !fit.done() && !budget.is_spent() && cut_short.is_none() {
        let before = budget.done(&fit);
        let updated = fit.update();
        cut_short = match (session.interrupt().check(), updated) {
            (Err(interrupted), _) => Some(interrupted.into()),
            // Half a rollout teaches nothing, but what it has measured counts.
            (Ok(()), Err(FitError::Env(EnvError::TimeIsOver))) => break,
            (Ok(()), Err(fault)) if updates == 0 => return Err(fault.into()),
            (Ok(()), updated) => updated.err().map(Error::from),
        };
        updates += 1;
        idle = if live && budget.done(&fit) == before { idle + 1 } else { 0 };
        if idle >= IDLE && fit.best().headroom() >= args.enough {
            break;
        }
        progress.remark(&format!("{:.1} % of the headroom", 100.0 * fit.best().headroom()));
        // That it was interrupted is known.
        let _ = progress.advance(budget.done(&fit) - before);
    }
    ensure!(
        updates > 0 || !live,
        "--seconds {}: over before one update, which takes up to {} calls; give more, or --set rollout.environments less",
        args.seconds,
        budget.update
    );
    fit.judge()?;
    Ok((fit, cut_short))
}
