//! What one stage holds, in the order of the forward pass.

use super::model::{Part, Tensors};
use super::recipe::Recipe;

/// A part of the model on one rank of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    /// Which part.
    pub part: Part,
    /// The layer, counted over all stages; the embedding counts to the first, the output to the last.
    pub layer: u32,
    /// What the rank holds of it.
    pub tensors: Tensors,
    /// Floating-point operations of one micro-batch's forward pass on this rank.
    pub forward: f64,
}

/// The blocks of a stage.
pub(super) fn blocks(recipe: &Recipe, stage: u8) -> Vec<Block> {
    let (model, layout, stage) = (&recipe.model, &recipe.layout, u32::from(stage));
    let tokens = recipe.tokens() as f64;
    let block = |part, layer| {
        let busiest = if part == Part::Mlp && layout.ep > 1 { recipe.imbalance } else { 1.0 };
        let forward = model.forward_flops(part, tokens) * busiest / f64::from(layout.tp);
        Block { part, layer, tensors: model.tensors(part, layout.tp, layout.ep), forward }
    };
    let first = layout.first_layer(model, stage);
    let mut blocks = Vec::new();
    if stage == 0 {
        blocks.push(block(Part::Embedding, 0));
    }
    for layer in first..first + layout.layers_of(model, stage) {
        blocks.push(block(Part::Attention, layer));
        blocks.push(block(Part::Mlp, layer));
    }
    if stage + 1 == layout.pp {
        let last = model.layers - 1;
        blocks.push(block(Part::Norm, last));
        let mut output = block(Part::Output, last);
        // A tied output layer on the embedding's own stage has no parameters of its own.
        if model.tied && layout.pp == 1 {
            output.tensors = Tensors::default();
        }
        blocks.push(output);
    }
    blocks
}

/// Runs of blocks that FSDP gathers together: the embedding, each layer, norm and output.
pub(super) fn units(blocks: &[Block]) -> Vec<std::ops::Range<usize>> {
    let starts = |part| matches!(part, Part::Embedding | Part::Attention | Part::Norm);
    let mut units: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        match units.last_mut() {
            Some(unit) if !starts(block.part) => unit.end = at + 1,
            _ => units.push(at..at + 1),
        }
    }
    units
}
