//! Calls between replicas of a stage: gradients, parameters and shards of them.

use dynamiccl_spec::{Collective, SyncMode};

use super::block::Block;
use super::bucket::Bucket;
use super::compression::effective;
use super::group::Group;
use super::script::{GRADIENT, PARAMETER, Script};

/// Sends one bucket of gradients, or of parameters, to the other replicas.
pub(super) fn synchronise(script: &mut Script<'_>, bucket: &Bucket, overlap: bool) {
    let recipe = script.recipe;
    let ranks = recipe.layout.size(bucket.group);
    if ranks == 1 {
        return;
    }
    let sent =
        effective(recipe.compression, recipe.compression_rate, bucket.bytes, recipe.gradient_bytes, ranks);
    script.compute(sent.flops);
    let priority = gradient_priority(bucket.layer, recipe.model.layers);
    for (collective, bytes) in sent.calls {
        if recipe.sync == SyncMode::Decentralised {
            let own = if collective.is_sharded() { bytes / u64::from(ranks) } else { bytes };
            gossip(script, bucket.group, own, priority, overlap);
        } else {
            call(script, bucket.group, collective, bytes, priority, overlap);
        }
    }
}

/// Gathers the parameters of some blocks from their shards.
pub(super) fn gather(script: &mut Script<'_>, blocks: &[Block], overlap: bool) {
    let width = u64::from(script.recipe.activation_bytes);
    for (group, bytes) in sharded_bytes(script, blocks, width) {
        call(script, group, Collective::AllGather, bytes, PARAMETER, overlap);
    }
}

/// Adds up the gradients of some blocks and leaves each rank its shard.
pub(super) fn scatter(script: &mut Script<'_>, blocks: &[Block], overlap: bool) {
    let recipe = script.recipe;
    let layer = blocks.first().map_or(0, |block| block.layer);
    let priority = gradient_priority(layer, recipe.model.layers);
    let width = u64::from(recipe.gradient_bytes);
    for (group, bytes) in sharded_bytes(script, blocks, width) {
        let ranks = recipe.layout.size(group);
        let sent =
            effective(recipe.compression, recipe.compression_rate, bytes, recipe.gradient_bytes, ranks);
        script.compute(sent.flops);
        let bytes = sent.calls.iter().map(|call| call.1).sum();
        call(script, group, Collective::ReduceScatter, bytes, priority, overlap);
    }
}

/// Early layers first: the next forward pass needs them first (Geryon, TensorExpress).
fn gradient_priority(layer: u32, layers: u32) -> u8 {
    GRADIENT - (layer * u32::from(GRADIENT) / layers.max(1)).min(u32::from(GRADIENT) - 1) as u8
}

/// Bytes of some blocks in each group, padded to equal shards.
fn sharded_bytes(script: &Script<'_>, blocks: &[Block], width: u64) -> [(Group, u64); 2] {
    let padded = |group, elements: u64| {
        let ranks = u64::from(script.recipe.layout.size(group));
        (group, elements.div_ceil(ranks) * ranks * width)
    };
    let dense = blocks.iter().flat_map(|block| &block.tensors.dense).sum();
    let expert = blocks.iter().flat_map(|block| &block.tensors.expert).sum();
    [padded(Group::Data, dense), padded(Group::ExpertData, expert)]
}

/// Exchanges a buffer with the neighbours on a ring of replicas: two of them, or one of two.
fn gossip(script: &mut Script<'_>, group: Group, bytes: u64, priority: u8, overlap: bool) {
    let first = script.len();
    let neighbours = (script.recipe.layout.size(group) - 1).min(2);
    for _ in 0..neighbours {
        call(script, group, Collective::SendRecv, bytes, priority, overlap);
    }
    script.fuse(first);
}

fn call(
    script: &mut Script<'_>,
    group: Group,
    collective: Collective,
    bytes: u64,
    priority: u8,
    overlap: bool,
) {
    if overlap {
        script.start(group, collective, bytes, priority);
    } else {
        script.wait(group, collective, bytes, priority);
    }
}
