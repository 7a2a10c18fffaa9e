//! Calls inside a stage: what tensor, sequence, context and expert parallelism exchange per block.
//!
//! Forward and backward mirror each other: the gradient of an allgather is a reducescatter of the same
//! bytes, that of an allreduce an allreduce on the other side of the block.

use dynamiccl_spec::Collective;

use super::block::Block;
use super::group::Group;
use super::model::Part;
use super::script::{ACTIVATION, Script};

/// Backward work ÷ forward work: gradients of inputs and of weights.
const BACKWARD: f64 = 2.0;
/// Share of the attention block's work before keys and values are known.
const BEFORE_ATTENTION: f64 = 0.5;
/// Bytes of one number of the loss.
const LOSS_BYTES: u64 = 4;

/// Forward pass of one block.
pub(super) fn forward(script: &mut Script<'_>, block: &Block) {
    enter(script, block.part);
    work(script, block, block.forward, [Collective::AllGather, Collective::AllToAll]);
    leave(script, block.part);
}

/// Backward pass of one block: leaves where the forward pass entered.
pub(super) fn backward(script: &mut Script<'_>, block: &Block) {
    leave_backward(script, block.part);
    work(script, block, BACKWARD * block.forward, [Collective::ReduceScatter, Collective::AllToAll]);
    enter_backward(script, block.part);
}

/// Activations of one micro-batch on one rank, between blocks.
pub(super) fn activation_bytes(script: &Script<'_>) -> u64 {
    let recipe = script.recipe;
    recipe.tokens() * u64::from(recipe.model.hidden) * u64::from(recipe.activation_bytes)
}

/// The block's own work, with what it exchanges in its middle.
fn work(script: &mut Script<'_>, block: &Block, flops: f64, [context, expert]: [Collective; 2]) {
    match block.part {
        Part::Attention => {
            let forward = context == Collective::AllGather;
            let before = if forward { BEFORE_ATTENTION } else { 1.0 - BEFORE_ATTENTION };
            script.compute(flops * before);
            let recipe = script.recipe;
            let tokens = u64::from(recipe.micro_batch_size) * u64::from(recipe.model.sequence);
            let width = 2 * recipe.model.kv_width() / u64::from(recipe.layout.tp);
            let bytes = tokens * width * u64::from(recipe.activation_bytes);
            script.wait(Group::Context, context, bytes, ACTIVATION);
            script.compute(flops * (1.0 - before));
        }
        Part::Mlp if script.recipe.model.experts > 0 => {
            exchange(script, expert);
            script.compute(flops);
            exchange(script, expert);
        }
        _ => script.compute(flops),
    }
}

/// Tokens to their experts, or back.
fn exchange(script: &mut Script<'_>, balanced: Collective) {
    let recipe = script.recipe;
    let split = if recipe.layout.sequence_parallel { u64::from(recipe.layout.tp) } else { 1 };
    let bytes = activation_bytes(script) * u64::from(recipe.model.experts_per_token) / split;
    let (collective, bytes) = if recipe.imbalance > 1.0 {
        (Collective::AllToAllV, (bytes as f64 * recipe.imbalance) as u64)
    } else {
        (balanced, bytes)
    };
    script.wait(Group::Expert, collective, bytes, ACTIVATION);
}

/// Before a block's matrices: with sequence parallelism every rank needs the whole sequence.
fn enter(script: &mut Script<'_>, part: Part) {
    if has_columns(part) && script.recipe.layout.sequence_parallel {
        tensor(script, Collective::AllGather);
    }
}

/// After a block's matrices: partial sums are added up.
fn leave(script: &mut Script<'_>, part: Part) {
    if has_rows(part) {
        let split = script.recipe.layout.sequence_parallel;
        tensor(script, if split { Collective::ReduceScatter } else { Collective::AllReduce });
    }
    if part == Part::Output {
        // Vocabulary-parallel cross-entropy: largest logit, target's logit, sum of exponentials.
        let bytes = script.recipe.tokens() * LOSS_BYTES;
        for _ in 0..3 {
            script.wait(Group::Tensor, Collective::AllReduce, bytes, ACTIVATION);
        }
    }
}

fn leave_backward(script: &mut Script<'_>, part: Part) {
    if has_rows(part) && script.recipe.layout.sequence_parallel {
        tensor(script, Collective::AllGather);
    }
}

fn enter_backward(script: &mut Script<'_>, part: Part) {
    if has_columns(part) {
        let split = script.recipe.layout.sequence_parallel;
        tensor(script, if split { Collective::ReduceScatter } else { Collective::AllReduce });
    }
}

fn tensor(script: &mut Script<'_>, collective: Collective) {
    let bytes = activation_bytes(script);
    script.wait(Group::Tensor, collective, bytes, ACTIVATION);
}

/// Whether the block starts with a matrix that is split by columns, and so needs whole inputs.
fn has_columns(part: Part) -> bool {
    matches!(part, Part::Attention | Part::Mlp | Part::Output)
}

/// Whether the block ends with a matrix that is split by rows, and so yields partial sums.
fn has_rows(part: Part) -> bool {
    matches!(part, Part::Embedding | Part::Attention | Part::Mlp)
}
