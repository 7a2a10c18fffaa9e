//! Photonic rails: the policy is judged beside the paper's rule and whatever needs no learning, by depth.

use std::fmt;

use anyhow::Result;
use dynamiccl_agent::subject::rails::{DELAY, JITTER, RailsCell, RailsVerdict};
use dynamiccl_agent::subject::{Rails, Subject};
use dynamiccl_env::rails::RailsStage;
use dynamiccl_policies::network::Weights;
use serde::Serialize;

use super::{Column, Ended, Lesson, ended, no_constants, unseen};
use crate::args::TrainArgs;
use crate::commands::train::Job;
use crate::session::Session;
use crate::table::{Column as Head, Table};

/// The judgement of a policy; increases in % over the baseline.
#[derive(Debug, Serialize)]
pub struct Judged {
    simulated: bool,
    repetitions: u32,
    delay_ms: f64,
    jitter: f64,
    surprise: f64,
    #[serde(flatten)]
    verdict: RailsVerdict,
}

impl Lesson for Rails {
    type Document = Judged;

    fn load(curriculum: &str, constants: &str) -> Result<Self> {
        no_constants(constants)?;
        Ok(Rails::new(curriculum, RailsStage::load(curriculum)?)?)
    }

    fn check(&self, _: &TrainArgs) -> Result<()> {
        Ok(())
    }

    fn columns(&self) -> Vec<Column> {
        Column::each(Rails::WATCHED, Rails::depths().map(|pp| format!("pp{pp}")))
    }

    fn conclude(
        job: &Job<Self>,
        weights: &Weights,
        args: &TrainArgs,
        session: &Session,
    ) -> Result<Ended<Judged>> {
        let progress = session.progress("eval", Rails::steps(args.eval_worlds));
        let Ended { document: verdict, command, results } =
            ended(unseen(job, weights, args, &progress)?, "rails");
        let document = Judged {
            simulated: true,
            repetitions: args.eval_worlds,
            delay_ms: DELAY / 1e3,
            jitter: JITTER.compute,
            surprise: JITTER.surprise,
            verdict,
        };
        Ok(Ended { document, command, results })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judged { repetitions, delay_ms, jitter, surprise, .. } = self;
        writeln!(
            f,
            "# {repetitions} unseen repetitions; circuits change in {delay_ms} ms, jitter {jitter}, surprise {surprise}"
        )?;
        let percent = |title: &'static str| Head::right(title).unit("(%)");
        let mut table = Table::new([
            Head::right("PP"),
            percent("provisioned"),
            percent("static_split"),
            percent("greedy"),
            percent("learned"),
        ]);
        for RailsCell { pp, provisioned, static_split, greedy, learned } in &self.verdict.cells {
            let [a, b, c, d] = [provisioned, static_split, greedy, learned].map(|x| format!("{x:.2}"));
            table.row([pp.to_string(), a, b, c, d]);
        }
        write!(f, "{table}")
    }
}
