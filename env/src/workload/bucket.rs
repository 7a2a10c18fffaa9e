//! Gathering gradients into buckets, in the order in which a backward pass finishes them.
//!
//! As in DistributedDataParallel and Megatron-LM a bucket holds whole tensors and is closed once it has
//! reached its size; gradients of experts have buckets of their own, because other ranks share them.

use super::block::Block;
use super::group::Group;
use super::recipe::Recipe;

/// Gradients that travel together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Who shares them.
    pub group: Group,
    /// How many bytes they have.
    pub bytes: u64,
    /// Position of the block whose backward pass completes them.
    pub ready: usize,
    /// The earliest layer among them.
    pub layer: u32,
}

/// The buckets of a stage, in the order in which they become ready.
pub(super) fn buckets(recipe: &Recipe, blocks: &[Block]) -> Vec<Bucket> {
    let mut buckets = fill(recipe, blocks, Group::Data);
    buckets.extend(fill(recipe, blocks, Group::ExpertData));
    // The backward pass comes from the last block; a stable sort keeps the order within a block.
    buckets.sort_by_key(|bucket| std::cmp::Reverse(bucket.ready));
    buckets
}

fn fill(recipe: &Recipe, blocks: &[Block], group: Group) -> Vec<Bucket> {
    let width = u64::from(recipe.gradient_bytes);
    let mut buckets = Vec::new();
    let mut open: Option<Bucket> = None;
    for (at, block) in blocks.iter().enumerate().rev() {
        let tensors = if group == Group::Data { &block.tensors.dense } else { &block.tensors.expert };
        for elements in tensors.iter().rev() {
            let mut bucket = open.take().unwrap_or(Bucket { group, bytes: 0, ready: at, layer: block.layer });
            bucket.bytes += elements * width;
            (bucket.ready, bucket.layer) = (at, block.layer);
            let cap = if buckets.is_empty() {
                recipe.first_bucket_bytes.min(recipe.bucket_bytes)
            } else {
                recipe.bucket_bytes
            };
            if bucket.bytes >= cap {
                buckets.push(bucket);
            } else {
                open = Some(bucket);
            }
        }
    }
    buckets.extend(open);
    buckets
}
