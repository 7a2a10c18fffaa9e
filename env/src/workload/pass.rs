//! One micro-batch's forward and backward pass over a stage, with what its replicas exchange meanwhile.

use dynamiccl_spec::SyncMode;

use super::block::{Block, blocks, units};
use super::bucket::{Bucket, buckets};
use super::group::Group;
use super::layer;
use super::recipe::Recipe;
use super::replicas::{gather, scatter, synchronise};
use super::script::Script;

/// What a stage holds and how its replicas agree.
pub(super) struct Stage {
    blocks: Vec<Block>,
    units: Vec<std::ops::Range<usize>>,
    /// Gradients, or parameters with local SGD; none with FSDP.
    buckets: Vec<Bucket>,
    agreement: Agreement,
}

/// When replicas exchange what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// Shards: gathered before use, reduced after it.
    Shards,
    /// Gradients, in the last backward pass.
    Gradients,
    /// Parameters, after the step.
    Parameters,
    /// Nothing in this iteration.
    Nothing,
}

impl Stage {
    /// The stage of a job, in an iteration at whose end local SGD synchronises or not.
    pub(super) fn new(recipe: &Recipe, stage: u8, synchronises: bool) -> Self {
        let blocks = blocks(recipe, stage);
        let agreement = match recipe.sync {
            _ if recipe.layout.fsdp => Agreement::Shards,
            SyncMode::Local if synchronises => Agreement::Parameters,
            SyncMode::Local => Agreement::Nothing,
            _ => Agreement::Gradients,
        };
        let units = units(&blocks);
        let buckets = if recipe.layout.fsdp { Vec::new() } else { buckets(recipe, &blocks) };
        Stage { blocks, units, buckets, agreement }
    }

    /// Elements of the parameters that a rank updates.
    pub(super) fn updated(&self, recipe: &Recipe) -> f64 {
        let shards = |group| if recipe.layout.fsdp { f64::from(recipe.layout.size(group)) } else { 1.0 };
        let held = |tensors: &Vec<u64>| tensors.iter().sum::<u64>() as f64;
        let dense: f64 = self.blocks.iter().map(|block| held(&block.tensors.dense)).sum();
        let expert: f64 = self.blocks.iter().map(|block| held(&block.tensors.expert)).sum();
        dense / shards(Group::Data) + expert / shards(Group::ExpertData)
    }

    /// Whether replicas hear of each other in this iteration.
    pub(super) fn agrees(&self) -> bool {
        self.agreement != Agreement::Nothing
    }

    /// Forward pass of a micro-batch.
    pub(super) fn forward(&self, script: &mut Script<'_>, micro_batch: u32) {
        script.micro_batch = Some(micro_batch);
        let gathers = self.agreement == Agreement::Shards && (script.recipe.reshard || micro_batch == 0);
        let order: Vec<usize> = (0..self.units.len()).collect();
        self.visit(script, &order, gathers, |script, unit| {
            self.blocks[unit].iter().for_each(|block| layer::forward(script, block));
        });
    }

    /// Backward pass of a micro-batch.
    pub(super) fn backward(&self, script: &mut Script<'_>, micro_batch: u32) {
        script.micro_batch = Some(micro_batch);
        let recipe = script.recipe;
        let last = micro_batch + 1 == recipe.micro_batches;
        let gathers = self.agreement == Agreement::Shards && recipe.reshard;
        let scatters = gathers || (self.agreement == Agreement::Shards && last && !self.defers(recipe));
        let sends = self.agreement == Agreement::Gradients && last && recipe.overlap;
        let order: Vec<usize> = (0..self.units.len()).rev().collect();
        self.visit(script, &order, gathers, |script, unit| {
            for at in unit.clone().rev() {
                layer::backward(script, &self.blocks[at]);
                if sends {
                    let ready = self.buckets.iter().filter(|bucket| bucket.ready == at);
                    ready.for_each(|bucket| synchronise(script, bucket, true));
                }
            }
            if scatters {
                scatter(script, &self.blocks[unit], recipe.overlap);
            }
        });
    }

    /// Gradients that did not travel during the last backward pass.
    pub(super) fn left_over(&self, script: &mut Script<'_>) {
        script.micro_batch = None;
        let recipe = script.recipe;
        if self.agreement == Agreement::Shards && self.defers(recipe) {
            let backwards = self.units.iter().rev();
            backwards.for_each(|unit| scatter(script, &self.blocks[unit.clone()], recipe.overlap));
        }
        if self.agreement == Agreement::Gradients && !recipe.overlap {
            self.buckets.iter().for_each(|bucket| synchronise(script, bucket, false));
        }
    }

    /// Averages whole parameters where local SGD does so now.
    pub(super) fn average(&self, script: &mut Script<'_>) {
        if self.agreement == Agreement::Parameters {
            self.buckets.iter().for_each(|bucket| synchronise(script, bucket, false));
        }
    }

    /// With a pipeline and kept parameters, PyTorch reduces all gradients after the last backward pass.
    fn defers(&self, recipe: &Recipe) -> bool {
        recipe.layout.pp > 1 && !recipe.reshard
    }

    /// Visits units in this order, gathering each one's parameters while the one before computes.
    fn visit(
        &self,
        script: &mut Script<'_>,
        order: &[usize],
        gathers: bool,
        mut pass: impl FnMut(&mut Script<'_>, std::ops::Range<usize>),
    ) {
        let ahead = script.recipe.overlap;
        let mut gathered = None;
        for (position, &unit) in order.iter().enumerate() {
            if gathers && (position == 0 || !ahead) {
                gather(script, &self.blocks[self.units[unit].clone()], false);
            }
            script.need(gathered.take());
            if let Some(&next) = order.get(position + 1).filter(|_| gathers && ahead) {
                let before = script.len();
                gather(script, &self.blocks[self.units[next].clone()], true);
                gathered = (script.len() > before).then(|| script.len() as u32 - 1);
            }
            pass(script, self.units[unit].clone());
        }
        script.need(gathered);
    }
}
