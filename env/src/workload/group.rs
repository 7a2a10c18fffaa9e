//! Which ranks talk to each other, and how they lie on nodes.
//!
//! Ranks are numbered as Megatron-LM does (`tp-cp-ep-dp-pp`): tensor parallelism changes fastest, then
//! context, then data with experts inside it, then pipeline. Expert groups are runs of the joint
//! context × data dimension, as since Megatron's parallel folding.

use std::fmt;

use dynamiccl_spec::Role;

use super::layout::Layout;

/// A kind of communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Ranks that share every layer's matrices.
    Tensor,
    /// Ranks that share a sequence.
    Context,
    /// Ranks that share the experts.
    Expert,
    /// Ranks that hold the same parameters, or shards of them: data × context.
    Data,
    /// Ranks that hold the same experts.
    ExpertData,
    /// Stages of one pipeline.
    Pipeline,
    /// First and last stage, where they share the embedding.
    Embedding,
}

/// How a communicator lies on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Nodes that it spans.
    pub nodes: u32,
    /// Its ranks on each of them; the most where they differ.
    pub ranks_per_node: u32,
    /// Communicators of the same kind with ranks on the same node, this one included.
    pub siblings: u32,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 7] = [
        Group::Tensor,
        Group::Context,
        Group::Expert,
        Group::Data,
        Group::ExpertData,
        Group::Pipeline,
        Group::Embedding,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Tensor => "tensor",
            Group::Context => "context",
            Group::Expert => "expert",
            Group::Data => "data",
            Group::ExpertData => "expert_data",
            Group::Pipeline => "pipeline",
            Group::Embedding => "embedding",
        }
    }

    /// The role of its collectives. Sends and receives between stages have roles of their own.
    pub const fn role(self) -> Role {
        match self {
            Group::Tensor | Group::Context | Group::Expert => Role::IntraStage,
            Group::Data | Group::ExpertData | Group::Pipeline | Group::Embedding => Role::InterStage,
        }
    }

    /// Whether its collectives join ranks of different stages.
    pub const fn spans_stages(self) -> bool {
        matches!(self, Group::Pipeline | Group::Embedding)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Layout {
    /// Ranks of one communicator of this kind.
    pub fn size(&self, group: Group) -> u32 {
        self.strided(group).0
    }

    /// The ranks of the communicator of this kind that `rank` belongs to.
    pub fn members(&self, group: Group, rank: u32) -> Vec<u32> {
        let (size, stride) = self.strided(group);
        if size == 1 {
            return vec![rank];
        }
        let first = self.first(group, rank);
        (0..size).map(|i| first + i * stride).collect()
    }

    /// How communicators of this kind lie on nodes of `gpus_per_node`, seen from the first node.
    pub fn placement(&self, group: Group, gpus_per_node: u32) -> Placement {
        let gpus = gpus_per_node.max(1);
        let members = self.members(group, 0);
        let mut on_node = std::collections::BTreeMap::new();
        for rank in &members {
            *on_node.entry(rank / gpus).or_insert(0) += 1;
        }
        let here = 0..gpus.min(self.ranks());
        let mut firsts: Vec<u32> =
            here.filter(|&r| self.belongs(group, r)).map(|r| self.first(group, r)).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Placement {
            nodes: on_node.len() as u32,
            ranks_per_node: on_node.values().copied().max().unwrap_or(1),
            siblings: firsts.len() as u32,
        }
    }

    /// Whether a rank has such a communicator at all: middle stages share no embedding.
    fn belongs(&self, group: Group, rank: u32) -> bool {
        let stage = rank / (self.tp * self.cp * self.dp);
        group != Group::Embedding || stage == 0 || stage + 1 == self.pp
    }

    /// The first rank of the communicator of this kind that `rank` belongs to.
    fn first(&self, group: Group, rank: u32) -> u32 {
        let (size, stride) = self.strided(group);
        let position = if group == Group::Embedding { rank / stride.max(1) } else { rank / stride % size };
        rank - position.min(size - 1) * stride
    }

    /// Size of a communicator of this kind, and the distance between its ranks.
    fn strided(&self, group: Group) -> (u32, u32) {
        let stage = self.tp * self.cp * self.dp;
        match group {
            Group::Tensor => (self.tp, 1),
            Group::Context => (self.cp, self.tp),
            Group::Expert => (self.ep, self.tp),
            Group::Data => (self.cp * self.dp, self.tp),
            Group::ExpertData => (self.cp * self.dp / self.ep, self.tp * self.ep),
            Group::Pipeline => (self.pp, stage),
            Group::Embedding if self.pp > 1 => (2, stage * (self.pp - 1)),
            Group::Embedding => (1, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(layout: Layout, group: Group, gpus: u32) -> (u32, u32, u32) {
        let placement = layout.placement(group, gpus);
        (placement.nodes, placement.ranks_per_node, placement.siblings)
    }

    #[test]
    fn replicas_over_whole_nodes_or_one_per_node() {
        let plain = Layout { dp: 32, ..Layout::default() };
        assert_eq!(on(plain, Group::Data, 8), (4, 8, 1));
        let rails = Layout { tp: 8, dp: 4, ..Layout::default() };
        assert_eq!(on(rails, Group::Data, 8), (4, 1, 8));
        assert_eq!(on(rails, Group::Tensor, 8), (1, 8, 1));
        let halves = Layout { tp: 4, dp: 8, ..Layout::default() };
        assert_eq!(on(halves, Group::Data, 8), (4, 2, 4));
        assert_eq!(on(halves, Group::Tensor, 8), (1, 4, 2));
    }

    #[test]
    fn tensor_is_fastest_then_context_then_data_then_pipeline() {
        let layout = Layout { tp: 2, cp: 2, dp: 4, pp: 2, ep: 4, ..Layout::default() };
        assert_eq!(layout.ranks(), 32);
        assert_eq!(layout.members(Group::Tensor, 5), [4, 5]);
        assert_eq!(layout.members(Group::Context, 5), [5, 7]);
        assert_eq!(layout.members(Group::Expert, 5), [1, 3, 5, 7]);
        assert_eq!(layout.members(Group::ExpertData, 5), [5, 13]);
        assert_eq!(layout.members(Group::Data, 17), [17, 19, 21, 23, 25, 27, 29, 31]);
        assert_eq!(layout.members(Group::Pipeline, 21), [5, 21]);
        assert_eq!(on(layout, Group::Pipeline, 8), (2, 1, 8));
    }

    #[test]
    fn a_shared_embedding_joins_the_ends_of_each_pipeline() {
        let layout = Layout { tp: 2, pp: 4, ..Layout::default() };
        assert_eq!(layout.members(Group::Embedding, 1), [1, 7]);
        assert_eq!(layout.members(Group::Embedding, 7), [1, 7]);
        assert_eq!(on(layout, Group::Embedding, 2), (2, 1, 2));
        assert_eq!(on(layout, Group::Embedding, 8), (1, 2, 2));
    }
}
