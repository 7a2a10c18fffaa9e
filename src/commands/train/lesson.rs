//! What differs between the subjects of `train` on the command line: how they are named, what is shown of them, and
//! how the policy is judged at the end.

mod knobs;
mod rails;
mod wan;

use std::fmt;

use anyhow::{Error, Result, ensure};
use dynamiccl_agent::subject::{Figures, Subject, Verdict};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_policies::network::Weights;
use serde::Serialize;

use super::Job;
use crate::args::TrainArgs;
use crate::progress::Progress;
use crate::session::{Session, USUAL_SEED};

/// A subject that can be asked for.
pub trait Lesson: Subject + Sized {
    /// What the judgement at the end says.
    type Document: Serialize + fmt::Display;

    /// The curriculum of a name or file.
    fn load(curriculum: &str, constants: &str) -> Result<Self>;

    /// Whether there will be a judgement: better to know it before hours of training than after.
    fn check(&self, args: &TrainArgs) -> Result<()>;

    /// What is shown of a judgement while a run trains.
    fn columns(&self) -> Vec<Column>;

    /// Judges the policy of these weights, which lies in the run's folder: a document, and its results by name.
    fn conclude(
        job: &Job<Self>,
        weights: &Weights,
        args: &TrainArgs,
        session: &Session,
    ) -> Result<Ended<Self::Document>>;
}

/// A judgement at the end.
pub struct Ended<D> {
    /// All of it.
    pub document: D,
    /// The command whose document it is.
    pub command: &'static str,
    /// What the policy says of itself.
    pub results: Vec<(String, f64)>,
}

/// One number of a judgement.
pub struct Column {
    /// What stands above it.
    pub title: String,
    /// The figure.
    pub figure: &'static str,
    /// Its place.
    pub place: String,
}

impl Column {
    /// A figure at places that stand above it.
    fn each(figure: &'static str, places: impl Iterator<Item = String>) -> Vec<Column> {
        let all = places.chain(["all".to_owned()]);
        all.map(|place| Column { title: place.clone(), figure, place }).collect()
    }
}

/// Judges a policy as it was while it trained, but on what nobody has met.
fn unseen<L: Lesson>(
    job: &Job<L>,
    weights: &Weights,
    args: &TrainArgs,
    progress: &Progress,
) -> Result<L::Verdict> {
    let step = |steps| progress.advance(steps).map_err(Error::from);
    job.training.look(weights, USUAL_SEED, args.eval_worlds, step)
}

/// All figures of a verdict as results.
fn results(figures: &Figures) -> Vec<(String, f64)> {
    let named = |(name, places): (&&'static str, &std::collections::BTreeMap<String, f64>)| {
        places.iter().map(|(place, value)| (format!("{name}.{place}"), *value)).collect::<Vec<_>>()
    };
    figures.iter().flat_map(named).collect()
}

/// The end of a subject whose verdict is its document.
fn ended<V: Verdict>(verdict: V, command: &'static str) -> Ended<V> {
    Ended { results: results(&verdict.figures()), document: verdict, command }
}

/// An error where somebody names constants of a model that a subject does not have.
fn no_constants(constants: &str) -> Result<()> {
    ensure!(
        constants == ConstantsFile::USUAL,
        "--constants {constants}: this curriculum is not about NCCL's knobs and has no such model; leave it out"
    );
    Ok(())
}
