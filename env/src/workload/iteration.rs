//! The program of one rank in one iteration: one-forward-one-backward, then the optimizer.

use dynamiccl_spec::Collective;

use super::compression::FLOPS_PER_VALUE;
use super::error::WorkloadError;
use super::group::Group;
use super::layer::activation_bytes;
use super::pass::Stage;
use super::planned::{Phase, Program};
use super::recipe::Recipe;
use super::script::{ACTIVATION, SCALAR, Script};

/// Bytes of a norm or a flag.
const SCALAR_BYTES: u64 = 4;
/// Reads and writes of one value by Adam: parameter, gradient, both moments.
const UPDATE_VALUES: f64 = 4.0;

/// What one rank of a stage does in one iteration, with a GPU that sustains `flops_per_us`.
///
/// With local SGD, `synchronises` says whether parameters are averaged at its end
/// ([`Recipe::synchronises`]); otherwise it means nothing.
pub fn iteration(
    recipe: &Recipe,
    stage: u8,
    synchronises: bool,
    flops_per_us: f64,
) -> Result<Program, WorkloadError> {
    recipe.check()?;
    let refuse = |what, value: String, remedy: String| {
        Err(WorkloadError::Recipe { model: recipe.model.name.clone(), what, value, remedy })
    };
    if u32::from(stage) >= recipe.layout.pp {
        return refuse("stage", stage.to_string(), format!("give 0 to {}", recipe.layout.pp - 1));
    }
    if !(1.0..=1e15).contains(&flops_per_us) {
        let remedy = "give what a GPU sustains in a µs, for an A100 about 1.4e8".to_owned();
        return refuse("flops_per_us", flops_per_us.to_string(), remedy);
    }
    let held = Stage::new(recipe, stage, synchronises);
    let mut script = Script::new(recipe, stage, flops_per_us);
    pipeline(&mut script, &held);
    script.phase = Phase::CoolDown;
    held.left_over(&mut script);
    script.phase = Phase::Optimizer;
    optimizer(&mut script, &held);
    held.average(&mut script);
    Ok(script.finish())
}

/// One-forward-one-backward. Where a send and a receive meet they are one launch, as in Megatron-LM and
/// in PyTorch's schedule; otherwise neighbours would wait for each other.
fn pipeline(script: &mut Script<'_>, held: &Stage) {
    let (stages, batches) = (script.recipe.layout.pp, script.recipe.micro_batches);
    let warm = (stages - u32::from(script.stage) - 1).min(batches);
    let steady = batches - warm;
    script.phase = Phase::WarmUp;
    for batch in 0..warm {
        receive(script, Way::Forward, batch);
        held.forward(script, batch);
        send(script, Way::Forward, batch);
    }
    script.phase = Phase::Steady;
    if steady > 0 {
        receive(script, Way::Forward, warm);
    }
    for back in 0..steady {
        let front = warm + back;
        held.forward(script, front);
        let first = script.len();
        send(script, Way::Forward, front);
        receive(script, Way::Backward, back);
        script.fuse(first);
        held.backward(script, back);
        let first = script.len();
        send(script, Way::Backward, back);
        if back + 1 < steady {
            receive(script, Way::Forward, front + 1);
            script.fuse(first);
        }
    }
    script.phase = Phase::CoolDown;
    for back in steady..batches {
        receive(script, Way::Backward, back);
        held.backward(script, back);
        send(script, Way::Backward, back);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// Sends activations to the next stage or their gradients to the previous one, if there is one.
fn send(script: &mut Script<'_>, way: Way, micro_batch: u32) {
    let target = match way {
        Way::Forward => after(script),
        Way::Backward => script.stage.checked_sub(1),
    };
    if let Some(peer) = target {
        let bytes = transferred(script);
        script.micro_batch = Some(micro_batch);
        script.send(peer, bytes);
    }
}

/// Receives activations from the previous stage or their gradients from the next one.
fn receive(script: &mut Script<'_>, way: Way, micro_batch: u32) {
    let source = match way {
        Way::Forward => script.stage.checked_sub(1),
        Way::Backward => after(script),
    };
    if let Some(peer) = source {
        let bytes = transferred(script);
        script.micro_batch = Some(micro_batch);
        script.receive(peer, bytes);
    }
}

fn after(script: &Script<'_>) -> Option<u8> {
    let next = u32::from(script.stage) + 1;
    (next < script.recipe.layout.pp).then_some(next as u8)
}

/// With sequence parallelism each tensor-parallel rank passes on its part of the sequence.
fn transferred(script: &Script<'_>) -> u64 {
    let layout = &script.recipe.layout;
    let split = if layout.sequence_parallel { u64::from(layout.tp) } else { 1 };
    activation_bytes(script) / split
}

/// The step: a shared embedding's gradients, the gradient norm along every axis, the loss, the update.
fn optimizer(script: &mut Script<'_>, held: &Stage) {
    script.micro_batch = None;
    let (model, layout) = (&script.recipe.model, script.recipe.layout);
    let at_end = script.stage == 0 || u32::from(script.stage) + 1 == layout.pp;
    if model.tied && at_end {
        let words = u64::from(model.vocab).div_ceil(u64::from(layout.tp));
        let bytes = words * u64::from(model.hidden) * u64::from(script.recipe.gradient_bytes);
        script.wait(Group::Embedding, Collective::AllReduce, bytes, ACTIVATION);
    }
    let values = held.updated(script.recipe);
    script.compute(FLOPS_PER_VALUE * values);
    // Only shards make the replicas' norms differ; the loss differs in any case.
    let scalars = if layout.fsdp { 2 } else { 1 };
    if held.agrees() {
        for _ in 0..scalars {
            script.wait(Group::Data, Collective::AllReduce, SCALAR_BYTES, SCALAR);
        }
    }
    script.wait(Group::Tensor, Collective::AllReduce, SCALAR_BYTES, SCALAR);
    script.wait(Group::Pipeline, Collective::AllReduce, SCALAR_BYTES, SCALAR);
    script.compute(FLOPS_PER_VALUE * UPDATE_VALUES * values);
}
