//! From words to workers with a communicator.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use dynamiccl_env::measure::{Circumstances, Clock};
use dynamiccl_env::once::once;
use dynamiccl_live::caller::RanksCaller;
use dynamiccl_live::cell::{Cell, grid};
use dynamiccl_live::crew::{Limits, LiveError};
use dynamiccl_live::launch::{LinkTools, Live, Mps, Recipe, Sharing, attend};
use dynamiccl_live::measure::Meter;
use dynamiccl_live::message::Opening;
use dynamiccl_live::session::{self, Begun};
use dynamiccl_live::sheet::{Conditions, Tried};
use dynamiccl_spec::{GBps, Overrides};

use super::missing;
use super::post::Post;
use crate::args::{CallsArgs, JobArgs};
use crate::commands::machine::name;
use crate::commands::plugin::library;
use crate::exit::Ending;
use crate::interrupt::{Interrupt, Interrupted};
use crate::session::Session;

/// NCCL's variables for a tuner, and for threads of a block.
const TUNER: &str = "NCCL_TUNER_PLUGIN";
const THREADS: &str = "NCCL_NTHREADS";
/// The plugin's for what it does.
const MODE: &str = "DYNAMICCL_MODE";
/// What ranks and their coordinator say to each other begins so.
const AMONG_US: &str = "DYNAMICCL_LIVE_";

/// Ranks that are ready for calls.
pub struct Job {
    live: Live,
    conditions: Conditions,
}

/// What ranks are started for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Whose clock counts.
    pub clock: Clock,
    /// Variables of all ranks.
    pub variables: Vec<(String, String)>,
    /// The calls.
    pub cells: Vec<Cell>,
    /// Threads per block; none for NCCL's own.
    pub threads: Option<u32>,
    /// All counts of threads of the run, where it has several.
    pub counts: Vec<u32>,
    /// The share of every GPU that compute beside the calls fills.
    pub beside: Option<f64>,
    /// Which start of ranks it is, of those of the run.
    pub start: usize,
}

impl Wish {
    /// These calls, and nothing else.
    pub fn of(clock: Clock, calls: &CallsArgs) -> Self {
        // Measured twice, a call would count twice.
        let cells = grid(&once(&calls.collectives), &once(&calls.sizes.0));
        Wish { clock, variables: vec![], cells, threads: None, counts: vec![], beside: None, start: 1 }
    }

    /// An error where so many ranks cannot make one of the calls.
    fn fits(&self, ranks: u32) -> Result<()> {
        self.cells.iter().try_for_each(|cell| cell.check(ranks)).map_err(told).context("--sizes")
    }

    /// What this run tells ranks, whatever else they are told: names, and who says so.
    fn sets(&self, args: &JobArgs, post: &Post) -> Vec<(&str, &'static str)> {
        let here = post.among.as_ref().is_none_or(|among| among.here);
        let shared = sharing(args).variables(0, here.then_some(""));
        // Ranks of a launcher have the MPS that somebody else has started.
        let starts_mps = args.share_gpu && post.among.is_none() && Mps::program().is_some();
        let mps = Mps::VARIABLES.into_iter().filter(|_| starts_mps);
        let shared = shared.into_iter().map(|(name, _)| name).chain(mps).map(|name| (name, "--share-gpu"));
        let threads = self.threads.map(|_| (THREADS, "--threads or --launch-threads"));
        let words = self.variables.iter().map(|(name, _)| (name.as_str(), "--policy or --context"));
        let always = [(TUNER, "every live run"), (MODE, "every live run")];
        always.into_iter().chain(shared).chain(threads).chain(words).collect()
    }

    /// An error where a variable is to have two values.
    fn permits(&self, args: &JobArgs, post: &Post) -> Result<()> {
        let sets = self.sets(args, post);
        args.env.iter().try_for_each(|(name, _)| {
            let by = sets.iter().find(|(known, _)| known == name).map(|(_, by)| *by);
            let by = by.or(name.starts_with(AMONG_US).then_some("every live run"));
            ensure!(by.is_none(), "--env {name}: {} sets it; leave --env {name} out", by.unwrap_or_default());
            Ok(())
        })
    }

    /// Bytes of the largest call.
    fn bytes(&self) -> u64 {
        self.cells.iter().map(|cell| cell.bytes).max().unwrap_or(0)
    }
}

impl Job {
    /// Starts ranks.
    pub fn start(args: &JobArgs, wish: &Wish, session: &Session) -> Result<Self> {
        let post = Post::find(args, variable)?;
        let gpus = missing::look(args, &post)?;
        let plugin = name(&library::find(args.library.as_deref())?);
        let recipe = recipe(args, &post, gpus, &plugin, wish)?;
        let mut live = Live::start(&recipe, stop(session.interrupt())).map_err(told)?;
        live.site.warnings.iter().for_each(|warning| session.output.note(format_args!("warning: {warning}")));
        // Ranks that share a GPU share its load; those of other machines share others.
        let sharers = if args.share_gpu { post.beside.div_ceil(gpus) } else { 1 };
        let opening = Opening {
            ranks: post.ranks,
            nccl: args.nccl.as_deref().map(name),
            plugin,
            floats: usize::try_from(wish.bytes() / 4)
                .context("a call is larger than this machine can count")?,
            beside: wish
                .beside
                .map_or(0, |share| ((share * 1000.0 / f64::from(sharers)).round() as u32).max(1)),
        };
        let begun = session::begin(&mut live.crew, &opening).map_err(told)?;
        let mps = live.site.has_mps;
        let conditions = Conditions { mps, ..conditions(args, &post, wish, begun) };
        Ok(Job { live, conditions })
    }

    /// Refuses what so many ranks cannot do. Then, under a launcher, where this is not rank 0: is that rank for every one of
    /// these wishes, until its work is done.
    pub fn attend(args: &JobArgs, wishes: &[Wish], session: &Session) -> Result<Option<Ending>> {
        let post = Post::find(args, variable)?;
        wishes.iter().try_for_each(|wish| wish.fits(post.ranks).and_then(|()| wish.permits(args, &post)))?;
        let Some(among) = post.among.as_ref().filter(|among| among.rank > 0) else { return Ok(None) };
        let gpus = missing::look(args, &post)?;
        let plugin = name(&library::find(args.library.as_deref())?);
        for wish in wishes {
            let recipe = recipe(args, &post, gpus, &plugin, wish)?;
            attend(&recipe, among, stop(session.interrupt())).map_err(told)?;
        }
        Ok(Some(Ending::Done))
    }

    /// Whether this process has the work to do and the files to write: alone, or as rank 0 under a launcher.
    pub fn leads(args: &JobArgs) -> Result<bool> {
        Ok(Post::find(args, variable)?.among.is_none_or(|among| among.rank == 0))
    }

    /// Under what else a wish would be measured, as far as it is known before there are ranks.
    pub fn circumstances(args: &JobArgs, wish: &Wish) -> Result<Circumstances> {
        let variables = Some(told_by(args, &Post::find(args, variable)?, wish));
        Ok(Circumstances { variables, ..Circumstances::default() })
    }

    /// Measures with the ranks.
    pub fn meter(&mut self) -> Meter<'_> {
        Meter { crew: &mut self.live.crew, clock: self.conditions.clock, beside: self.conditions.load > 0 }
    }

    /// Under what it measures.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// How many ranks these words mean.
    pub fn ranks(args: &JobArgs) -> Result<u32> {
        Ok(Post::find(args, variable)?.ranks)
    }

    /// Lets the environment ask the ranks.
    pub fn into_caller(self) -> RanksCaller {
        RanksCaller::new(self.live, self.conditions.clock)
    }

    /// Lets all ranks end by themselves.
    pub fn end(mut self) -> Result<()> {
        self.live.crew.end().map_err(told)
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What a rank is started with.
fn recipe(args: &JobArgs, post: &Post, gpus: u32, plugin: &str, wish: &Wish) -> Result<Recipe> {
    let mut variables = vec![(TUNER.to_owned(), plugin.to_owned()), (MODE.to_owned(), "driven".to_owned())];
    variables.extend(wish.variables.iter().cloned());
    variables.extend(wish.threads.map(|threads| (THREADS.to_owned(), threads.to_string())));
    // As a job sets it that wants channels of allgathers tuned; ranks never group broadcasts.
    for (name, value) in [("NCCL_DEBUG", "WARN"), (Overrides::GATHERING, "0")] {
        if std::env::var_os(name).is_none() {
            variables.push((name.to_owned(), value.to_owned()));
        }
    }
    variables.extend(args.env.iter().cloned());
    Ok(Recipe {
        program: std::env::current_exe().context("cannot tell where this program is")?,
        arguments: ["live", "worker"].map(Into::into).to_vec(),
        guard: ["live", "guard"].map(Into::into).to_vec(),
        ranks: post.ranks,
        gpus,
        among: post.among.clone(),
        sharing: sharing(args),
        link: link(args)?,
        variables,
        logs: args.logs.clone(),
        start: wish.start,
        limits: limits(args),
    })
}

fn sharing(args: &JobArgs) -> Sharing {
    if args.share_gpu { Sharing::Shared } else { Sharing::Apart }
}

/// The error that a command ends with.
pub fn told(error: LiveError) -> anyhow::Error {
    match error {
        LiveError::Stopped => Interrupted.into(),
        other => anyhow!(other),
    }
}

fn stop(interrupt: Interrupt) -> Box<dyn Fn() -> bool + Send> {
    Box::new(move || interrupt.check().is_err())
}

fn limits(args: &JobArgs) -> Limits {
    let usual = Limits::default();
    let stall = Duration::from_secs(args.timeout);
    let gather = Duration::from_secs(args.wait);
    Limits { gather, stall, silence: usual.silence.min(stall), ..usual }
}

fn link(args: &JobArgs) -> Result<Option<(String, LinkTools)>> {
    let Some(word) = &args.link else { return Ok(None) };
    let rate: GBps = word.parse().with_context(|| format!("--link {word}"))?;
    let tools = LinkTools::find(args.ip.as_deref(), args.tc.as_deref()).map_err(told)?;
    // Whole bits a second, which every tc reads.
    Ok(Some((format!("{:.0}bit", rate.0 * 8e9), tools)))
}

fn conditions(args: &JobArgs, post: &Post, wish: &Wish, begun: Begun) -> Conditions {
    let Begun { first, nodes, ranks_per_node } = begun;
    Conditions {
        ranks: post.ranks,
        nodes: Some(nodes),
        ranks_per_node,
        link: args
            .link
            .clone()
            .unwrap_or_else(|| if args.share_gpu { "loopback" } else { "none" }.to_owned()),
        shared: args.share_gpu,
        gpu: first.gpu,
        cuda: first.cuda,
        nccl: first.nccl,
        threads: wish.counts.clone(),
        load: first.blocks,
        clock: wish.clock,
        mps: None,
        tried: Tried::default(),
        variables: Some(told_by(args, post, wish)),
    }
}

/// What ranks are told by variables of this shell and by words. What NCCL prints is no matter, and of what the run sets the
/// shell's value is not what ranks get.
fn told_by(args: &JobArgs, post: &Post, wish: &Wish) -> BTreeMap<String, String> {
    let sets = wish.sets(args, post);
    let ours = |name: &str| sets.iter().any(|(known, _)| *known == name);
    let shell = std::env::vars_os().map(|(name, value)| (name, value.to_string_lossy().into_owned()));
    let shell = shell.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let shell = shell.filter(|(name, _)| name.starts_with("NCCL_") && !ours(name));
    let words = wish.variables.iter().chain(&args.env).cloned();
    shell.chain(words).filter(|(name, _)| !name.starts_with("NCCL_DEBUG")).collect()
}
