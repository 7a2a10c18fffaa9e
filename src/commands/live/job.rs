//! From words to workers with a communicator.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use dynamiccl_live::clock::Clock;
use dynamiccl_live::crew::{Limits, LiveError};
use dynamiccl_live::launch::{LinkTools, Live, Recipe, Sharing};
use dynamiccl_live::measure::Meter;
use dynamiccl_live::message::{Opening, Surroundings};
use dynamiccl_live::session;
use dynamiccl_live::sheet::Conditions;
use dynamiccl_spec::GBps;

use super::missing;
use crate::args::JobArgs;
use crate::commands::machine::name;
use crate::commands::plugin::library;
use crate::interrupt::{Interrupt, Interrupted};
use crate::session::Session;

/// Ranks that are ready for calls.
pub struct Job {
    live: Live,
    conditions: Conditions,
}

impl Job {
    /// Starts ranks for calls of at most so many bytes; `more` are variables of theirs.
    pub fn start(
        args: &JobArgs,
        clock: Clock,
        more: Vec<(String, String)>,
        bytes: u64,
        session: &Session,
    ) -> Result<Self> {
        let gpus = missing::look(args)?;
        let plugin = name(&library::find(args.library.as_deref())?);
        let link = link(args)?;
        let mut variables = vec![
            ("NCCL_TUNER_PLUGIN".to_owned(), plugin.clone()),
            ("DYNAMICCL_MODE".to_owned(), "driven".to_owned()),
        ];
        variables.extend(more);
        variables.extend(args.threads.iter().map(|threads| ("NCCL_NTHREADS".to_owned(), threads.clone())));
        if std::env::var_os("NCCL_DEBUG").is_none() {
            variables.push(("NCCL_DEBUG".to_owned(), "WARN".to_owned()));
        }
        variables.extend(args.env.iter().cloned());
        let recipe = Recipe {
            program: std::env::current_exe().context("cannot tell where this program is")?,
            arguments: ["live", "worker"].map(Into::into).to_vec(),
            ranks: args.ranks,
            sharing: if args.share_gpu { Sharing::Shared } else { Sharing::Apart },
            link,
            variables,
            logs: args.logs.clone(),
            limits: limits(args),
        };
        let stop = stop(session.interrupt());
        let mut live = Live::start(&recipe, stop).map_err(told)?;
        live.site.warnings.iter().for_each(|warning| session.output.note(format_args!("warning: {warning}")));
        let opening = Opening {
            ranks: args.ranks,
            device: 0,
            nccl: args.nccl.as_deref().map(name),
            plugin,
            floats: usize::try_from(bytes / 4).context("a call is larger than this machine can count")?,
            load: 0,
        };
        let begun = session::begin(&mut live.crew, &opening, |rank| rank as u32 % gpus).map_err(told)?;
        Ok(Job { live, conditions: conditions(args, clock, begun) })
    }

    /// Measures with the ranks.
    pub fn meter(&mut self) -> Meter<'_> {
        Meter { crew: &mut self.live.crew, clock: self.conditions.clock, load: 0 }
    }

    /// Under what it measures.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Lets all ranks end by themselves.
    pub fn end(self) -> Result<()> {
        self.live.crew.end().map_err(told)
    }
}

/// The error that a command ends with.
pub fn told(error: LiveError) -> anyhow::Error {
    match error {
        LiveError::Stopped => Interrupted.into(),
        other => anyhow!(other),
    }
}

fn stop(interrupt: Interrupt) -> Box<dyn Fn() -> bool> {
    Box::new(move || interrupt.check().is_err())
}

fn limits(args: &JobArgs) -> Limits {
    let usual = Limits::default();
    let stall = Duration::from_secs(args.timeout);
    Limits { stall, silence: usual.silence.min(stall), ..usual }
}

fn link(args: &JobArgs) -> Result<Option<(String, LinkTools)>> {
    let Some(word) = &args.link else { return Ok(None) };
    let rate: GBps = word.parse().with_context(|| format!("--link {word}"))?;
    let tools = LinkTools::find(args.ip.as_deref(), args.tc.as_deref()).map_err(told)?;
    // Whole bits a second, which every tc reads.
    Ok(Some((format!("{:.0}bit", rate.0 * 8e9), tools)))
}

fn conditions(args: &JobArgs, clock: Clock, begun: Surroundings) -> Conditions {
    Conditions {
        ranks: args.ranks,
        link: args
            .link
            .clone()
            .unwrap_or_else(|| if args.share_gpu { "loopback" } else { "none" }.to_owned()),
        shared: args.share_gpu,
        gpu: begun.gpu,
        cuda: begun.cuda,
        nccl: begun.nccl,
        threads: args.threads.as_ref().and_then(|threads| threads.parse().ok()).unwrap_or(0),
        load: 0,
        clock,
    }
}
