//! A job over photonic rails: its iteration, the networks that carry it, and what is profiled of both.

use std::sync::Arc;

use super::error::RailsError;
use super::fabric::Fabric;
use super::graph::Graph;
use super::profile::Profile;
use super::timing::Timing;
use super::weave::weave;
use crate::workload::{Layout, ModelShape, Program, Recipe, iteration};

/// Tokens of a sequence in the paper's job: it does not say, and this is what makes a transfer 64 MiB.
const SEQUENCE: u32 = 4096;
/// Sequences of a micro-batch in the paper's job.
const MICRO_BATCH: u32 = 2;

/// A job over photonic rails.
#[derive(Debug, Clone)]
pub struct Job {
    /// What is trained.
    pub recipe: Arc<Recipe>,
    /// Times of its own work.
    pub timing: Timing,
    /// What carries its calls.
    pub fabric: Fabric,
    /// One iteration of it.
    pub graph: Arc<Graph>,
    /// What the first iteration teaches.
    pub profile: Arc<Profile>,
}

impl Job {
    /// A job.
    pub fn new(recipe: Recipe, timing: Timing, fabric: Fabric) -> Result<Job, RailsError> {
        Job::build(recipe, timing, fabric, false)
    }

    /// The same job in a framework that gathers a stage's parameters when the iteration begins, not when its first
    /// activations arrive: advice for the framework, because no control plane and no tuner can do so.
    pub fn hoisted(&self) -> Result<Job, RailsError> {
        Job::build((*self.recipe).clone(), self.timing, self.fabric, true)
    }

    fn build(recipe: Recipe, timing: Timing, fabric: Fabric, hoist: bool) -> Result<Job, RailsError> {
        timing.check()?;
        fabric.check()?;
        two_axes(&recipe.layout)?;
        recipe.check()?;
        let stages = 0..recipe.layout.pp as u8;
        let programs: Result<Vec<Program>, _> =
            stages.map(|stage| iteration(&recipe, stage, true, timing.flops_per_us)).collect();
        let graph = weave(&programs?, &recipe.layout, &timing, &fabric.scale_up, hoist);
        let profile = Profile::of(&graph, &fabric);
        Ok(Job {
            recipe: Arc::new(recipe),
            timing,
            fabric,
            graph: Arc::new(graph),
            profile: Arc::new(profile),
        })
    }

    /// The same job with switches that take so long.
    pub fn with_delay(&self, delay_us: f64) -> Job {
        Job { fabric: self.fabric.with_delay(delay_us), ..self.clone() }
    }
}

/// The paper's job with other degrees: Llama3-8B, tensor parallelism inside the server.
pub fn paper_recipe(pp: u32, fsdp: u32, micro_batches: u32) -> Recipe {
    let mut model = ModelShape::preset("llama3_8b").expect("a preset");
    model.sequence = SEQUENCE;
    let layout = Layout { dp: fsdp, tp: 4, pp, fsdp: true, ..Layout::default() };
    Recipe { micro_batches, micro_batch_size: MICRO_BATCH, ..Recipe::new(model, layout) }
}

/// Circuits of a port serve the neighbours of two rings at most (the paper's second constraint).
fn two_axes(layout: &Layout) -> Result<(), RailsError> {
    let third = [("cp", layout.cp), ("ep", layout.ep)].into_iter().find(|(_, degree)| *degree > 1);
    let Some((axis, degree)) = third else { return Ok(()) };
    let remedy = "a port has circuits for data and pipeline parallelism; give 1";
    Err(RailsError::value(axis, degree, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_axis_has_no_circuits() {
        let mut recipe = paper_recipe(2, 2, 2);
        recipe.layout.cp = 2;
        let error = Job::new(recipe, Timing::default(), Fabric::default()).unwrap_err().to_string();
        assert!(error.starts_with("cp = 2: "), "{error}");
    }
}
