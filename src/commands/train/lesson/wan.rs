//! Rings across datacentres: the policy is judged beside cadences, triggers and the clairvoyant, by correlation.

use std::fmt;

use anyhow::Result;
use dynamiccl_agent::subject::wan::{COSTS, WanCell, WanVerdict};
use dynamiccl_agent::subject::{Subject, Wan};
use dynamiccl_env::wan::{Costs, WanCurriculum};
use dynamiccl_policies::network::Weights;
use serde::Serialize;

use super::{Column, Ended, Lesson, ended, no_constants, unseen};
use crate::args::TrainArgs;
use crate::commands::train::Job;
use crate::session::Session;
use crate::table::{Column as Head, Table};

/// The judgement of a policy.
#[derive(Debug, Serialize)]
pub struct Judged {
    simulated: bool,
    /// Traces of each correlation.
    traces: u32,
    #[serde(flatten)]
    costs: Costs,
    #[serde(flatten)]
    verdict: WanVerdict,
}

impl Lesson for Wan {
    type Document = Judged;

    fn load(curriculum: &str, constants: &str) -> Result<Self> {
        no_constants(constants)?;
        Ok(Wan::new(WanCurriculum::load(curriculum)?)?)
    }

    fn check(&self, _: &TrainArgs) -> Result<()> {
        Ok(())
    }

    fn columns(&self) -> Vec<Column> {
        let mut rhos: Vec<f64> = self.stages()[0].file.rho.iter().map(|(rho, _)| *rho).collect();
        rhos.sort_by(f64::total_cmp);
        Column::each(Wan::WATCHED, rhos.into_iter().map(|rho| format!("rho{rho}")))
    }

    fn conclude(
        job: &Job<Self>,
        weights: &Weights,
        args: &TrainArgs,
        session: &Session,
    ) -> Result<Ended<Judged>> {
        let progress = session.progress("eval", job.training.subject().steps(args.eval_worlds));
        let Ended { document: verdict, command, results } =
            ended(unseen(job, weights, args, &progress)?, "wan");
        let document = Judged { simulated: true, traces: args.eval_worlds, costs: COSTS, verdict };
        Ok(Ended { document, command, results })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judged { traces, costs: Costs { rebuild_ms, reroute_ms }, .. } = self;
        writeln!(
            f,
            "# {traces} unseen traces of each correlation, 8 GPUs, rebuilding {rebuild_ms} ms, rerouting {reroute_ms} ms"
        )?;
        let ms = |title: &'static str| Head::right(title).unit("(ms)");
        let mut table = Table::new([
            Head::right("rho"),
            ms("best cadence"),
            ms("threshold"),
            ms("learned"),
            ms("clairvoyant"),
        ]);
        for WanCell { rho, best_cadence, threshold, learned, clairvoyant } in &self.verdict.cells {
            let [a, b, c, d] = [best_cadence, threshold, learned, clairvoyant].map(|ms| format!("{ms:.2}"));
            table.row([rho.to_string(), a, b, c, d]);
        }
        write!(f, "{table}")
    }
}
