//! Features that nobody says: what a deployment leaves out, or what is hidden to see what it is worth.
//!
//! A hidden feature is encoded as an unknown one, which is a value that policies are trained with. What
//! NCCL itself tells cannot be hidden: no deployment is without it.

use std::ops::Range;

use crate::features::catalogue::{Block, FEATURES, NEVER, Part, slot};
use crate::words::{UnknownWord, look_up};

/// Features of the job that are not told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden {
    names: Vec<&'static str>,
}

impl Hidden {
    /// The features of these names, and all of the blocks that are named, as far as they can be hidden.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Hidden, UnknownWord> {
        let features = hideable().map(|(name, _)| (name, Named::Feature(name)));
        let blocks = Block::ALL.into_iter().filter(|block| of_block(*block).next().is_some());
        let known: Vec<_> = blocks.map(|block| (block.name(), Named::Block(block))).chain(features).collect();
        let mut names = Vec::new();
        for word in words {
            match look_up("feature or block that can be hidden", word, &known)? {
                Named::Feature(name) => names.push(name),
                Named::Block(block) => names.extend(of_block(block)),
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(Hidden { names })
    }

    /// Their names, sorted.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Whether nothing is hidden.
    pub fn is_nothing(&self) -> bool {
        self.names.is_empty()
    }

    /// Where their numbers are within the job's part of a context.
    pub fn slots(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.names.iter().filter_map(|name| slot(name))
    }
}

/// What a word names.
#[derive(Debug, Clone, Copy)]
enum Named {
    Feature(&'static str),
    Block(Block),
}

/// What a deployment may leave out.
fn hideable() -> impl Iterator<Item = (&'static str, Block)> {
    let told = FEATURES.iter().filter(|feature| feature.part == Part::Job && feature.unknown != NEVER);
    told.map(|feature| (feature.name, feature.block))
}

fn of_block(block: Block) -> impl Iterator<Item = &'static str> {
    hideable().filter(move |(_, of)| *of == block).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{JobContext, NetLink, Role, SyncMode, Topology};
    use crate::features::{Encoder, JOB_WIDTH};

    fn told() -> JobContext {
        let mut job = JobContext::default();
        job.topology = Topology { ranks: 16, nodes: 2, inter: NetLink::RoceV2, ..job.topology };
        job.topology.tier_max = Some(3);
        job.topology.tier_mix = Some([0.0, 0.5, 0.0, 0.5, 0.0]);
        (job.scheduler.role, job.workload.sync) = (Role::InterStage, SyncMode::Bsp);
        job
    }

    fn encoded(job: &JobContext, words: &[&str]) -> [f32; JOB_WIDTH] {
        *Encoder::new(job).without(&Hidden::of(words.iter().copied()).unwrap()).job()
    }

    #[test]
    fn a_hidden_feature_is_as_if_nobody_had_said_it_and_no_other_changes() {
        let mut untold = told();
        (untold.topology.tier_max, untold.topology.tier_mix) = (None, None);
        let hidden = encoded(&told(), &["communicator_tier_max", "communicator-tier-mix"]);
        assert_eq!(hidden, *Encoder::new(&untold).job());
        assert_eq!(encoded(&told(), &[]), *Encoder::new(&told()).job());
    }

    #[test]
    fn of_a_block_all_is_hidden_but_what_nccl_tells() {
        let mut untold = told();
        untold.topology = Topology { ranks: 16, nodes: 2, ..Topology::default() };
        assert_eq!(encoded(&told(), &["topology"]), *Encoder::new(&untold).job());
        untold.scheduler.role = Role::Unknown;
        assert_eq!(encoded(&told(), &["topology", "scheduler"]), *Encoder::new(&untold).job());
    }

    #[test]
    fn what_is_always_told_cannot_be_hidden() {
        for word in ["log2_ranks", "log2_bytes", "collective", "last_time", "feedback", "tier"] {
            let refused = Hidden::of([word]).unwrap_err().to_string();
            assert!(refused.starts_with("unknown feature or block that can be hidden"), "{refused}");
        }
        let refused = Hidden::of(["comunicator_tier_max"]).unwrap_err().to_string();
        assert!(refused.contains("did you mean \"communicator_tier_max\"?"), "{refused}");
    }
}
